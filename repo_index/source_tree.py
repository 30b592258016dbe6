"""The folders that indexed files come from: one folder, or several under names of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from repo_index.files import FileRules, Fingerprint, Limits
from repo_index.reading import Content, read_content

IGNORE_FILES = frozenset({".gitignore", ".redraftignore"})


class FolderTree:
    """The files of one folder that its rules let in, under relative paths with ``/``."""

    def __init__(
        self,
        root: Path,
        limits: Limits | None = None,
        *,
        endings: tuple[str, ...] = (),
        patterns: str = "",
    ) -> None:
        """``endings``: names that count end so, all when empty; ``patterns``: lines as of an ignore
        file."""
        self.rules = FileRules(root, limits or Limits(), patterns)
        self.root = self.rules.root
        self._endings = endings

    @property
    def problem(self) -> str:
        """Return what the last walk through everything had to leave out; empty when nothing."""
        return self.rules.problem

    def walk(self, below: str = "") -> Iterator[tuple[str, Fingerprint]]:
        """Yield files that count by name, below a folder."""
        for path, fingerprint in self.rules.walk(below):
            if not self._endings or path.endswith(self._endings):
                yield path, fingerprint

    def excluded(self, path: str) -> str:
        """Return why a path is left out by name, location or kind; empty when it counts."""
        reason = self.rules.excluded(path)
        if not reason and self._endings and not path.endswith(self._endings):
            return f"only files that end in {', '.join(self._endings)} are indexed here"
        return reason

    def covers(self, path: str) -> bool:
        """Return True if a path that ``walk`` does not give is gone; otherwise it is not ours to
        judge."""
        return True

    def is_folder(self, path: str) -> bool:
        """Return True if a folder, not a link to one, has this path."""
        absolute = self.root / path
        return absolute.is_dir() and not absolute.is_symlink()

    def read(self, path: str) -> Content:
        """Return the content of a file. Raises OSError."""
        return read_content(self.root, path, self.rules.limits.bytes)

    def forget(self) -> None:
        """Ignore files may have changed."""
        self.rules.forget()


class NamedTrees:
    """Several trees, each below a name that holds no ``/``."""

    def __init__(self, trees: Mapping[str, FolderTree]) -> None:
        self.trees = dict(trees)

    @property
    def problem(self) -> str:
        return next((tree.problem for tree in self.trees.values() if tree.problem), "")

    def walk(self, below: str = "") -> Iterator[tuple[str, Fingerprint]]:
        chosen_name, _, inside = below.partition("/")
        for name, tree in self.trees.items():
            if not below or name == chosen_name:
                for path, fingerprint in tree.walk(inside):
                    yield f"{name}/{path}", fingerprint

    def excluded(self, path: str) -> str:
        name, _, inside = path.partition("/")
        tree = self.trees.get(name)
        return tree.excluded(inside) if tree else "of no folder that is indexed"

    def covers(self, path: str) -> bool:
        return path.partition("/")[0] in self.trees

    def is_folder(self, path: str) -> bool:
        name, _, inside = path.partition("/")
        tree = self.trees.get(name)
        return tree is not None and tree.is_folder(inside)

    def read(self, path: str) -> Content:
        name, _, inside = path.partition("/")
        return self.trees[name].read(inside)

    def forget(self) -> None:
        for tree in self.trees.values():
            tree.forget()


SourceTree = FolderTree | NamedTrees
