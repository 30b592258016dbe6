"""The datastores of the open workspaces, mapped for lookups, and the open buffers above them."""

from __future__ import annotations

from collections import OrderedDict
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lsp_server.engine.compiling import CompileTask
from lsp_server.engine.model_paths import tokenizer_of
from lsp_server.shared.contract.jobs import AnyJob, CompletionJob, EditJob, GenerateJob
from lsp_server.text.surrogates import replace_surrogates

if TYPE_CHECKING:
    from accel.text.tokenizer import Tokenizer
    from repo_index.datastore import Datastore, IndexSnapshot
    from repo_index.overlay import Overlay
    from repo_index.tokens import TextTokenizer

MOST_SENT = 256
"""Documents at a server whose texts for drafts are held."""


def text_tokenizer(model: str | Path | None) -> TextTokenizer:
    """Return the tokenizer of a model as the index uses it, without the model. Raises
    ModelUnavailable."""
    return _for_texts(tokenizer_of(model))


def _for_texts(tokenizer: Tokenizer) -> TextTokenizer:
    from repo_index.tokens import TextTokenizer

    return TextTokenizer(tokenizer.fast, tokenizer.sha256, tokenizer.vocabulary_size)


def lookup_parts(vocabulary_size: int) -> dict[str, tuple[Any, CompileTask]]:
    """Return the functions that lookups call, by name: each with the task that compiles it."""
    from repo_index import warming

    return {
        name: (
            function,
            CompileTask(
                *(name, "repo_index.warming", (name, str(vocabulary_size))), warming.SECONDS[name]
            ),
        )
        for name, function in warming.parts_of(vocabulary_size).items()
    }


class WorkspaceIndexes:
    """Datastores by folder, for the tokenizer of one model. Used by one thread."""

    def __init__(self, model: str | Path | None, common: bool) -> None:
        self._model = model
        self._common = common
        self._datastores: dict[str, Datastore] = {}
        self._stores: dict[str, Path] = {}
        self._overlays: dict[str, Overlay] = {}
        self._sent: OrderedDict[str, None] = OrderedDict()
        """Workspaces of texts that jobs carried, the one of the latest job last."""

    @cached_property
    def tokenizer(self) -> TextTokenizer:
        """The model's tokenizer."""
        return text_tokenizer(self._model)

    def share(self, tokenizer: Tokenizer) -> None:
        """Use the tokenizer of the model that this process has already."""
        if "tokenizer" not in vars(self):
            self.tokenizer = _for_texts(tokenizer)

    def warm_up(self) -> None:
        """Compile, or load the compiled form of, what lookups call."""
        from repo_index import warming

        warming.warm_up(self.tokenizer)

    @property
    def folders(self) -> list[str]:
        """Workspaces that are mapped."""
        return list(self._datastores)

    def snapshot(self, folder: str, cursor: tuple[str, int] | None = None) -> IndexSnapshot | None:
        """Return the snapshot to look up for a workspace; None without. ``cursor``: path of the
        document to complete and characters before the cursor."""
        return self.datastore(folder).snapshot(cursor) if folder else None

    def snapshot_for(self, job: AnyJob, cursor: int | None = None) -> IndexSnapshot | None:
        """Return what can be looked up for ``job``: its workspace, or the texts that it carries.
        ``cursor``: characters before the cursor in its document."""
        folder = job.workspace
        if not isinstance(job, GenerateJob) and job.similar:
            folder = self._take_similar(job)
        return self.snapshot(folder, None if cursor is None else (job.path, cursor))

    def _take_similar(self, job: CompletionJob | EditJob) -> str:
        """Have the document of ``job`` and the texts that it carries as open buffers of a workspace
        of their own; return its name."""
        folder = f"sent {job.scope}\0{job.path}"
        self._sent[folder] = None
        self._sent.move_to_end(folder)
        while len(self._sent) > MOST_SENT:
            self.forget(next(iter(self._sent)))
        overlay = self.datastore(folder).overlay
        assert overlay is not None
        texts = {snippet.path: snippet.text for snippet in job.similar}
        texts[job.path] = "".join(job.similar_to)
        for path in overlay.paths - texts.keys():
            overlay.close_buffer(path)
        for path, text in texts.items():
            overlay.set_buffer(path, replace_surrogates(text))
        return folder

    def datastore(self, folder: str) -> Datastore:
        """Return the datastore of a workspace, mapped when first asked for."""
        if folder not in self._datastores:
            from repo_index.datastore import Datastore
            from repo_index.overlay import Overlay
            from repo_index.store import common_store, workspace_store

            tokenizer = self.tokenizer
            overlay = self._overlays.setdefault(folder, Overlay(tokenizer))
            store = self._stores.get(folder)
            if store is None and folder not in self._sent:
                store = workspace_store(Path(folder), tokenizer.sha256)
            self._datastores[folder] = self._same_store(folder, overlay) or Datastore(
                store,
                tokenizer.sha256,
                common=common_store(tokenizer.sha256) if self._common else None,
                overlay=overlay,
            )
        return self._datastores[folder]

    def _same_store(self, folder: str, overlay: Overlay) -> Datastore | None:
        """Return a datastore above a store that is mapped for another name; None where none is."""
        for other, store in self._stores.items():
            if other != folder and store == self._stores.get(folder) and other in self._datastores:
                return self._datastores[other].below(overlay)
        return None

    def build(self, folder: str) -> None:
        """Bring the datastore of a workspace up to date in this process, and map it. Where a
        running server keeps it in line, it is mapped as it is."""
        from repo_index.errors import StoreLocked
        from repo_index.indexer import Indexer
        from repo_index.source_tree import FolderTree
        from repo_index.store import workspace_store

        store = workspace_store(Path(folder), self.tokenizer.sha256)
        tree = FolderTree(Path(folder))
        try:
            indexer = Indexer(tree, store, self.tokenizer, workspace=folder)
        except StoreLocked:
            self.reload(folder)
            return
        try:
            indexer.refresh()
            self.reload(folder, str(indexer.folder))
        finally:
            indexer.close()

    def open(self, folder: str, store: str = "") -> Datastore:
        """Return the datastore of a workspace, in ``store`` if given. Open buffers stay."""
        if store and self._stores.get(folder) != Path(store):
            self._stores[folder] = Path(store)
            self._datastores.pop(folder, None)
        return self.datastore(folder)

    def reload(self, folder: str, store: str = "") -> None:
        """The datastore was written (in ``store`` when not where it should be)."""
        self.open(folder, store).reload_if_changed()

    def set_buffer(self, folder: str, path: str, text: str) -> None:
        """An open document reads ``text``; it counts in place of its file."""
        overlay = self.datastore(folder).overlay
        assert overlay is not None
        overlay.set_buffer(path, text)

    def close_buffer(self, folder: str, path: str) -> None:
        """A document was closed; its file counts again."""
        overlay = self.datastore(folder).overlay
        assert overlay is not None
        overlay.close_buffer(path)

    def forget(self, folder: str) -> None:
        """Unmap a workspace, and forget its open buffers."""
        self._datastores.pop(folder, None)
        self._stores.pop(folder, None)
        self._overlays.pop(folder, None)
        self._sent.pop(folder, None)

    def clear(self) -> None:
        """Unmap all workspaces."""
        self._datastores.clear()
        self._overlays.clear()
        self._sent.clear()
