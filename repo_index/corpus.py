"""The datastore of common code (D_c): standard libraries, installed packages, any folders. One
store for each tokenizer, shared by all workspaces. Files are read, never run."""

from __future__ import annotations

import sysconfig
import threading
from collections.abc import Callable, Iterable
from hashlib import sha256
from pathlib import Path

from repo_index.errors import DamagedStore, StoreLocked
from repo_index.file_layer import FileLayer
from repo_index.files import Limits
from repo_index.indexer import Indexer, IndexProgress
from repo_index.manifest import Manifest
from repo_index.source_tree import FolderTree, NamedTrees
from repo_index.store import common_store
from repo_index.tokens import TextTokenizer

MAX_TOKENS = 50_000_000
"""A common datastore beyond this finds little more, and costs lookups their cache."""
_LIMITS = Limits(bytes=300_000)
_ENVIRONMENTS = (".venv", "venv", "env", ".env", ".virtualenv")
_LIBRARY_TESTS = "\n".join(
    ("test/", "tests/", "testing/", "idlelib/", "lib2to3/", "turtledemo/", "*_test.py", "test_*.py")
)
"""They hold little that a user writes."""


def standard_library() -> Path:
    """That of the interpreter that runs us."""
    return Path(sysconfig.get_path("stdlib"))


def package_folders(environment: Path) -> list[Path]:
    """Return the folders of installed packages of an environment, found by their names.
    ``environment``: a virtual environment's folder, its ``python``, or a folder of packages
    itself."""
    folder = environment
    if folder.is_file() or folder.parent.name in ("bin", "Scripts"):
        # Not resolved: the python of an environment is a link to the one that it was made from.
        folder = folder.parent.parent
    if folder.name in ("site-packages", "dist-packages"):
        return [folder]
    patterns = ("lib/python3*/site-packages", "lib64/python3*/site-packages", "Lib/site-packages")
    folders = [path for pattern in patterns for path in sorted(folder.glob(pattern))]
    return list({path.resolve(): path for path in folders if path.is_dir()}.values())


def workspace_environments(workspace: Path) -> list[Path]:
    """Return folders of packages of the virtual environments that lie in a workspace. A link to one
    elsewhere is followed nowhere: what a workspace links to is not ours to read."""
    folders = []
    for name in _ENVIRONMENTS:
        environment = workspace / name
        if not environment.is_symlink() and (environment / "pyvenv.cfg").is_file():
            folders += [
                f
                for f in package_folders(environment)
                if workspace.resolve() in f.resolve().parents
            ]
    return folders


class Corpus:
    """The folders of a common datastore, each under a name of its own."""

    def __init__(
        self, folders: Iterable[Path], *, endings: tuple[str, ...] = (".py", ".pyi")
    ) -> None:
        """``endings``: names that count end so; all text files when empty."""
        self.trees: dict[str, FolderTree] = {}
        for folder in folders:
            tree = FolderTree(folder, _LIMITS, endings=endings, patterns=_LIBRARY_TESTS)
            self.trees[_name(tree.root)] = tree

    def build(
        self,
        tokenizer: TextTokenizer,
        store: Path | None = None,
        *,
        progress: Callable[[IndexProgress], None] | None = None,
        pause: Callable[[], None] = lambda: None,
        layer: FileLayer | None = None,
        max_tokens: int = MAX_TOKENS,
        threads: int = 1,
    ) -> Indexer:
        """Add the folders to the store (by default the shared one) and merge it; keeps the rest.
        Returns the indexer, closed. Raises StoreLocked while another process builds,
        StoreUnwritable."""
        target = store or common_store(tokenizer.sha256)
        former = _folders_of(target, tokenizer.sha256)
        there = {folder for folder in former if Path(folder).is_dir()}
        tree = _CorpusTree(self.trees, {_name(Path(folder)) for folder in former - there})
        indexer = Indexer(
            tree,
            target,
            tokenizer,
            workspace="\n".join(sorted(there | {str(tree.root) for tree in self.trees.values()})),
            layer=layer,
            unique=True,
            max_tokens=max_tokens,
            pause=pause,
            threads=threads,
        )
        try:
            indexer.refresh(progress=progress)
            while indexer.merge():
                pause()
            if indexer.status().segments > 1:
                indexer.merge(everything=True)
        finally:
            indexer.close()
        return indexer


class _CorpusTree(NamedTrees):
    """Trees to index; those indexed before stay as they are, unless their folders are gone."""

    def __init__(self, trees: dict[str, FolderTree], gone: set[str]) -> None:
        super().__init__(trees)
        self._gone = gone

    def covers(self, path: str) -> bool:
        return path.partition("/")[0] in self._gone or super().covers(path)


def _name(folder: Path) -> str:
    digest = sha256(str(folder).encode("utf-8", "surrogateescape")).hexdigest()[:8]
    return f"{folder.name}-{digest}"


def _folders_of(store: Path, tokenizer_hash: str) -> set[str]:
    """Return the folders that a store was made from."""
    try:
        return set(Manifest.read(store, tokenizer_hash).workspace.split("\n")) - {""}
    except DamagedStore:
        return set()


def build_common(
    workspace: str, tokenizer: TextTokenizer, *, pause: Callable[[], None] = lambda: None
) -> bool:
    """Our own standard library and the packages of a workspace's environment, in the shared store.
    False while another process does so."""
    folders = [standard_library(), *workspace_environments(Path(workspace))]
    with _ONE_BUILD:
        try:
            Corpus(folders).build(tokenizer, pause=pause)
        except StoreLocked:
            return False
    return True


_ONE_BUILD = threading.Lock()
