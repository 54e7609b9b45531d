"""The exception tree. Every error a user can meet is one of these, with its exit code.

AgentctxError                      70  a bug, unless a subclass says otherwise
├── UsageError                      2  the request can't be carried out as written
│   ├── ConfigError                    an unknown key or a bad value in flags, environment or files
│   ├── RepoError                      not a directory, no repository, nothing to index
│   ├── TaskError                      a log, test, focus or pin that does not exist
│   └── BudgetError                    the budget can't hold what must never be dropped
├── ConflictError                   3  the tree changed meanwhile; nothing was written
├── UnavailableError                4  something that must be installed or fetched is not there
│   ├── EngineUnavailable              an engine's package is missing or refuses the model
│   ├── ModelUnavailable               an unknown, missing or damaged model
│   └── NotEnoughMemory                the model can't fit; nothing was loaded
├── EditError                       1  an edit that can't be made; nothing landed
│   ├── EditFormatError                an answer that doesn't say clearly what to change
│   ├── EditRefused                    a path that an edit must not touch
│   └── CheckInvalid                   a check that proves nothing, e.g. it imported the user's own tree
├── DamagedState                   70  the journal or the cache is in a state that we can't explain
└── Interrupted                   130  Ctrl-C or SIGTERM; everything was rolled back

Foreign exceptions are mapped where they arise, with `raise ... from`.
"""

from __future__ import annotations


class AgentctxError(Exception):
    """Base of all errors. `hint` names the next step (a command, a flag), if there is one."""

    exit_code = 70

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(AgentctxError):
    exit_code = 2


class ConfigError(UsageError):
    pass


class RepoError(UsageError):
    pass


class TaskError(UsageError):
    pass


class BudgetError(UsageError):
    """`need`: tokens that would have been enough for what was packed, where that is known; `{need}` in the hint."""

    def __init__(self, message: str, *, hint: str, need: int | None = None) -> None:
        super().__init__(message, hint=hint.format(need=need) if need is not None else hint)
        self.need = need
        self._hint = hint

    def with_need(self, need: int) -> BudgetError:
        return BudgetError(self.message, hint=self._hint, need=need)


class ConflictError(AgentctxError):
    exit_code = 3


class UnavailableError(AgentctxError):
    exit_code = 4


class EngineUnavailable(UnavailableError):
    pass


class ModelUnavailable(UnavailableError):
    pass


class NotEnoughMemory(UnavailableError):
    pass


class EditError(AgentctxError):
    exit_code = 1


class EditFormatError(EditError):
    pass


class EditRefused(EditError):
    pass


class CheckInvalid(EditError):
    pass


class DamagedState(AgentctxError):
    exit_code = 70


class Interrupted(AgentctxError):
    exit_code = 130
