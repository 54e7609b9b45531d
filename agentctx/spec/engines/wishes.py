"""Where models should run, and what they should be held in, as the user wishes it. Pure data."""

from __future__ import annotations

from dataclasses import dataclass

from agentctx.config import RunOptions

AUTO = "auto"


@dataclass(frozen=True, slots=True)
class Wish:
    """AUTO leaves it to the engine. `option`: what to call it in messages, '' or 'drafter-'."""

    device: str = AUTO
    dtype: str = AUTO
    option: str = ""

    @property
    def said(self) -> str:
        """The flags that say so; '' where nothing was asked for."""
        pairs = (("device", self.device), ("dtype", self.dtype))
        return " ".join(f"--{self.option}{name} {value}" for name, value in pairs if value != AUTO)


NO_WISH = Wish()


@dataclass(frozen=True, slots=True)
class Wishes:
    """Of one model: as the main model, and as a drafter."""

    main: Wish = NO_WISH
    drafter: Wish = Wish(option="drafter-")


NO_WISHES = Wishes()


def wishes_of(options: RunOptions) -> Wishes:
    drafter = Wish(options.drafter_device, str(options.drafter_dtype), "drafter-")
    return Wishes(Wish(options.device, str(options.dtype)), drafter)
