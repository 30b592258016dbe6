"""The settings of a git repository that say which files git ignores. Its files are read: git itself
would run programs that a repository's configuration names."""

from __future__ import annotations

import os
import re
from pathlib import Path

from repo_index.ignore import IgnoreFile, read_small
from repo_index.wildmatch import path_expression

_DEEPEST_INCLUDE = 10
_SYSTEM_FILES = (
    *("/etc/gitconfig", "/opt/homebrew/etc/gitconfig", "/usr/local/etc/gitconfig"),
    *("C:/ProgramData/Git/config", "C:/Program Files/Git/etc/gitconfig"),
)
_SECTION = re.compile(rb'\[([\w.-]+)(?:[ \t]+"((?:\\.|[^"\\\n])*)")?[ \t]*\]')
_SETTING = re.compile(
    rb'([A-Za-z][\w-]*)[ \t]*(?:=[ \t]*((?:\\\r?\n|\\.|"(?:\\\r?\n|\\.|[^"\\\n])*"|[^"\\\n#;])*))?'
)
_ESCAPES = {b"n": b"\n", b"t": b"\t", b"b": b"\b"}


class GitSettings:
    """Git's configuration of the repository whose work tree begins at ``top``."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self.own = top / ".git"
        """What ``.git`` is or names: a worktree and a submodule have one of their own."""
        if (named := read_small(self.own)) is not None and named.startswith(b"gitdir: "):
            self.own = top / os.fsdecode(named[8:].rstrip(b"\r\n"))
        shared = read_small(self.own / "commondir")
        self.common = self.own / os.fsdecode(shared.rstrip(b"\r\n")) if shared else self.own
        """What all worktrees of the repository share."""
        self.sources: set[Path] = set()
        """The files that decide, whether they are there or not."""
        self._values: dict[str, bytes] = {}
        for file in self._files():
            self._read(file, 0)
        self.ignore_case = self._is_on("core.ignorecase")

    def ignore_files(self) -> list[IgnoreFile | None]:
        """Return what applies to the whole work tree, the most important last."""
        named = self._values.get("core.excludesfile")
        chosen = _config_home() / "git" / "ignore" if named is None else self._path(named, self.top)
        files = [chosen, self.common / "info" / "exclude"]
        self.sources.update(files)
        base = f"{self.top.as_posix().rstrip('/')}/"
        return [
            IgnoreFile.read(file, os.path.normpath(file), base, ignore_case=self.ignore_case)
            for file in files
        ]

    def _files(self) -> list[Path]:
        """Return the system's, the user's and the repository's files: later ones win."""
        environment = os.environ
        system = [environment["GIT_CONFIG_SYSTEM"]] if "GIT_CONFIG_SYSTEM" in environment else []
        if environment.get("GIT_CONFIG_NOSYSTEM", "").lower() in ("1", "true", "yes", "on"):
            system = [os.devnull]
        if "GIT_CONFIG_GLOBAL" in environment:
            user = [Path(environment["GIT_CONFIG_GLOBAL"])]
        else:
            user = [_config_home() / "git" / "config", Path(os.path.expanduser("~/.gitconfig"))]
        return [
            *map(Path, system or _SYSTEM_FILES),
            *user,
            self.common / "config",
            self.own / "config.worktree",
        ]

    def _read(self, file: Path, depth: int) -> None:
        self.sources.add(file)
        text = read_small(file)
        if text is None or depth > _DEEPEST_INCLUDE:
            return
        if file.name == "config.worktree" and not self._is_on("extensions.worktreeconfig"):
            return
        offset, section, subsection = 0, "", ""
        while offset < len(text):
            if (match := _SECTION.match(text, offset)) is not None:
                section = match[1].decode().lower()
                subsection = os.fsdecode(_without_quotes(match[2] or b""))
            elif (match := _SETTING.match(text, offset)) is not None:
                value = b"true" if match[2] is None else _without_quotes(match[2].rstrip())
                name = ".".join(filter(None, (section, subsection, match[1].decode().lower())))
                self._values[name] = value
                if name == "include.path" or (
                    name == f"includeif.{subsection}.path" and self._applies(subsection, file)
                ):
                    self._read(self._path(value, file.parent), depth + 1)
            else:
                match = re.compile(rb"[#;][^\n]*|\s+|.", re.DOTALL).match(text, offset)
                assert match is not None
            offset = match.end()

    def _applies(self, condition: str, file: Path) -> bool:
        """Return whether a conditional include of ``file`` is followed."""
        kind, _, pattern = condition.partition(":")
        if kind == "onbranch":
            head = read_small(self.own / "HEAD") or b""
            texts = [head.strip().removeprefix(b"ref: refs/heads/")]
        elif kind in ("gitdir", "gitdir/i"):
            pattern = os.path.expanduser(pattern)
            if pattern.startswith("./"):
                pattern = f"{os.path.realpath(file.parent)}{pattern[1:]}"
            elif not os.path.isabs(pattern):
                pattern = f"**/{pattern}"
            texts = [
                os.fsencode(f(self.own).replace(os.sep, "/"))
                for f in (os.path.realpath, os.path.abspath)
            ]
        else:
            return False
        pattern += "**" if pattern.endswith("/") else ""
        ignore_case = kind == "gitdir/i"
        expression = path_expression(os.fsencode(pattern), ignore_case=ignore_case)
        return expression is not None and any(
            re.fullmatch(expression, text.lower() if ignore_case else text, re.DOTALL)
            for text in texts
        )

    def _is_on(self, name: str) -> bool:
        return self._values.get(name, b"").lower() in (b"true", b"yes", b"on", b"1")

    def _path(self, value: bytes, folder: Path) -> Path:
        return folder / os.path.expanduser(os.fsdecode(value))


def _config_home() -> Path:
    return Path(os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config"))


def _without_quotes(value: bytes) -> bytes:
    return re.sub(rb'\\\r?\n|\\(.)|"', lambda match: _ESCAPES.get(match[1], match[1] or b""), value)
