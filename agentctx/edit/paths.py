"""Which paths an edit may touch. Nothing outside the repository, nothing of git's own, nothing protected."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from agentctx.errors import EditRefused
from agentctx.prompt import EditPatch


@dataclass(frozen=True, slots=True)
class PathRules:
    """`protect` are gitignore-like globs: without a slash they match a name at any depth, `dir/` all below it."""

    root: Path
    protect: tuple[str, ...] = ()

    def check(self, path: str) -> str:
        """The path to edit, from the repository's root, POSIX. A link inside the repository gives its target.

        Raises:
            EditRefused: the path leaves the repository, belongs to git or is protected.
        """
        _check_form(path)
        self._check_protected(path)
        root = self.root.resolve()
        try:
            real = (root / path).resolve()
        except (OSError, RuntimeError) as error:  # RuntimeError: a loop of links, before Python 3.13
            raise EditRefused(f"{path} can't be resolved: {error}") from error
        if not real.is_relative_to(root):
            raise EditRefused(f"{path} is a link that leaves the repository (to {real})")
        if real.is_dir():
            raise EditRefused(f"{path} is a folder")
        inner = real.relative_to(root).as_posix()
        _check_form(inner)
        self._check_protected(inner)
        return inner

    def _check_protected(self, path: str) -> None:
        for pattern in self.protect:
            if glob_matches(pattern, path):
                raise EditRefused(f"{path} is protected by {pattern!r}", hint="see `protect` in the configuration")


def _check_form(path: str) -> None:
    pure = PurePosixPath(path)
    bad = not path or path != path.strip() or "\0" in path or "\\" in path or "\n" in path
    if bad or pure.is_absolute() or re.match(r"^[A-Za-z]:", path) or path == "~" or path.startswith("~/"):
        raise EditRefused(f"{path!r} is not a path inside the repository")
    if ".." in pure.parts or pure.as_posix() != path or path == ".":
        raise EditRefused(f"{path!r} is not a plain path inside the repository")
    if any(_is_git_folder(part) for part in pure.parts):
        raise EditRefused(f"{path} belongs to git")


def _is_git_folder(part: str) -> bool:
    """`.git`, and the spellings that case-insensitive file systems take for it (CVE-2014-9390)."""
    name = re.sub("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]", "", part).rstrip(" .").lower()
    return name.partition(":")[0] in (".git", "git~1")


def glob_matches(pattern: str, path: str) -> bool:
    """Whether a gitignore-like glob matches `path` or a folder above it."""
    anchored = "/" in pattern.rstrip("/")
    regex = re.compile(_regex(pattern.strip("/")))
    parts = PurePosixPath(path).parts
    above = ["/".join(parts[: n + 1]) for n in range(len(parts))]
    if pattern.endswith("/"):
        above = above[:-1]
    names: Iterable[str] = above if anchored else (entry.rpartition("/")[2] for entry in above)
    return any(regex.fullmatch(name) for name in names)


def _regex(pattern: str) -> str:
    out = []
    for piece in re.split(r"(\*\*/|/\*\*$|\*\*|\*|\?|\[[^\]]+\])", pattern):
        known = {"**/": "(?:.*/)?", "/**": "/.*", "**": ".*", "*": "[^/]*", "?": "[^/]"}
        is_class = piece.startswith("[") and piece.endswith("]")
        out.append(known.get(piece) or (piece.replace("[!", "[^") if is_class else re.escape(piece)))
    return "".join(out)


def checked_patch(patch: EditPatch, rules: PathRules) -> EditPatch:
    """`patch` with each path checked; links inside the repository are replaced by what they point to, with a note.

    Raises:
        EditRefused: a path must not be edited, or two of its paths are one file.
    """
    files, notes = [], list(patch.notes)
    for edit in patch.files:
        path = rules.check(edit.path)
        if path != edit.path:
            notes.append(f"{edit.path} is a link; {path} is edited")
        files.append(replace(edit, path=path))
    _check_distinct([edit.path for edit in files])
    return EditPatch(tuple(sorted(files, key=lambda edit: edit.path)), tuple(notes))


def _check_distinct(paths: Sequence[str]) -> None:
    twice = sorted({path for path in paths if paths.count(path) > 1})
    if twice:
        raise EditRefused(f"{twice[0]} is edited under two names")
