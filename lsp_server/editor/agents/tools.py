"""The tools of agents: edits of files, each as a preview or written, and places that are alike.

A file's text is data: nothing in it is carried out. What is told of a file, in an answer or in a
refusal, is told of files that agents may have alone.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict, defaultdict
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from itertools import compress
from pathlib import Path
from typing import Any

from lsp_server.editor.agents.agent_files import AgentFile, AgentFiles, Change, replace_all
from lsp_server.editor.agents.daemon_session import DaemonSession
from lsp_server.editor.agents.renaming import renamed
from lsp_server.editor.agents.similar import SimilarPlace, SimilarPlaces
from lsp_server.editor.editing.hunks import apply_hunks, unified_diff
from lsp_server.shared.errors import EditRefused, RedraftError
from lsp_server.tasks.apply.bounded import BoundedEdits
from lsp_server.tasks.apply.edit_text import EditFields, apply_update, makes_file, updates_of
from lsp_server.tasks.apply.replacements import FileUpdate
from lsp_server.text.documents.document import (
    Document,
    line_end,
    offsets_of_lines,
    split_lines,
    with_line_feeds,
)
from lsp_server.text.syntax.languages import language_of_path
from lsp_server.text.text_edit import TextEdit

MOST_PREVIEWS = 32
LOOK_S, MOST_LOOKS = 0.5, 60
ONE_SNIPPET = "put its changes into one snippet"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEdit(EditFields):
    """An edit, and the file that it is of."""

    path: str = field(metadata={"also": ("file_path", "target_file")})

    async def updates(self, edits: BoundedEdits) -> dict[str, FileUpdate]:
        """Return what it changes, file by file. Raises AmbiguousSnippet."""
        changes = self.replacements()
        if changes:
            return {self.path: FileUpdate(self.path, changes)}
        return await edits.read(self.snippet, updates_of, self.snippet, self.path)


@dataclass(frozen=True, kw_only=True)
class _Edit:
    preview: bool = field(default=False, metadata={"also": ("dry_run",)})
    hash: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyEdit(_Edit, FileEdit):
    """Edits of a file and of others: all of them are written, or none. ``instruction`` and
    ``model`` change nothing: no chat model is asked."""

    others: list[FileEdit] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class EditFile(ApplyEdit):
    """An edit as above; without a text, ``lines`` that the model rewrites by an instruction."""

    lines: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameSymbol(_Edit):
    """A name at a line of a file that is called otherwise, wherever it is meant."""

    path: str
    line: int
    name: str
    new_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FindSimilar:
    """A text that others are compared with."""

    text: str


@dataclass(frozen=True, slots=True)
class PlannedEdit:
    """Files as they become. ``how``: ``exact``, ``unchanged`` where the files have the edit
    already, or ``model`` where one wrote it; ``note``: a warning to the agent."""

    changes: tuple[Change, ...]
    how: str = "exact"
    note: str = ""

    @property
    def diff(self) -> str:
        """All of it as one unified diff."""
        return "".join(unified_diff(file.text, text, file.path) for file, text in self.changes)

    @property
    def hash(self) -> str:
        """Of the files as they are and as they become."""
        digest = hashlib.sha256()
        for file, text in self.changes:
            for data in (str(file.place).encode(), file.inside.data, file.bytes_of(text)):
                digest.update(hashlib.sha256(data).digest())
        return digest.hexdigest()[:32]


class AgentTools:
    """The tools of one client. For one event loop."""

    def __init__(self, files: AgentFiles, daemon: DaemonSession) -> None:
        self._files, self.daemon = files, daemon
        self._similar = SimilarPlaces()
        self._edits = BoundedEdits()
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        """One edit of a file is made at a time."""
        self._previews: OrderedDict[str, PlannedEdit] = OrderedDict()

    async def apply_edit(self, call: ApplyEdit, files: AgentFiles) -> dict[str, Any]:
        """Put snippets into their files. Raises RedraftError."""
        updates: dict[str, FileUpdate] = {}
        for edit in (call, *call.others):
            of_files = await edit.updates(self._edits)
            if twice := updates.keys() & of_files:
                raise EditRefused(f"{min(twice)} is named twice; {ONE_SNIPPET}")
            updates |= of_files

        async def plan(read_files: Sequence[AgentFile]) -> PlannedEdit:
            merges = []
            for file, update in zip(read_files, updates.values(), strict=True):
                texts = file.text, update, language_of_path(file.path)
                size = len(file.text) + update.size
                merges.append(await self._edits.merged(size, apply_update, *texts))
            changes = zip(read_files, (merge.text for merge in merges), strict=True)
            is_same = all(merge.how == "unchanged" for merge in merges)
            notes = [f"{file.path} is a new file" for file in read_files if not file.inside.status]
            how = "unchanged" if is_same else "exact"
            return PlannedEdit(tuple(changes), how, "; ".join(notes))

        may_make = [
            await self._edits.read(each.snippet, makes_file, each) for each in updates.values()
        ]
        new = set(compress(updates, may_make))
        return await self._edited(call, list(updates), files, plan, new)

    async def edit_file(self, call: EditFile, files: AgentFiles) -> dict[str, Any]:
        """Have the model rewrite lines, or put in a text. Raises RedraftError."""
        has_text = bool(call.snippet or call.edits or call.old_string is not None)
        if has_text == bool(call.lines and call.instruction):
            raise EditRefused(
                "send either lines with an instruction, for the model, or what is to stand there: "
                "old_string and new_string, edits, or a snippet"
            )
        if has_text:
            return await self.apply_edit(call, files)

        async def plan(read_files: Sequence[AgentFile]) -> PlannedEdit:
            (file,) = read_files
            return await self._rewritten(file, call)

        return await self._edited(call, [call.path], files, plan)

    async def rename_symbol(self, call: RenameSymbol, files: AgentFiles) -> dict[str, Any]:
        """Rename what a name means at a line. Raises RedraftError."""

        async def plan(read_files: Sequence[AgentFile]) -> PlannedEdit:
            (file,) = read_files
            changes, note = await asyncio.to_thread(
                renamed, files, file, call.line, call.name, call.new_name
            )
            return PlannedEdit(tuple(changes), note=note)

        return await self._edited(call, [call.path], files, plan)

    async def find_similar(self, call: FindSimilar, files: AgentFiles) -> dict[str, Any]:
        """Return the places that are most like a text. Raises RedraftError."""
        # The daemon indexes what a client has open.
        await self.daemon.join()
        excerpts, notes = [], []
        for folder in files.folders:
            similar, note = await self._alike(folder, call.text)
            notes.append(note)
            for excerpt in similar:
                try:
                    file = files.read(str(excerpt.folder / excerpt.path))
                except RedraftError:
                    continue
                text = excerpt.text.strip("\n")
                if first := _line_of(text, with_line_feeds(file.text)):
                    lines = f"{first}:{first + text.count(chr(10))}"
                    excerpts.append({"path": file.path, "lines": lines, "text": text})
        return {"places": excerpts, "note": "; ".join(filter(None, notes))}

    async def _alike(self, folder: Path, text: str) -> tuple[list[SimilarPlace], str]:
        """Return places of a folder like a text, once it has an index. Raises RedraftError."""
        looks = 0
        while (similar := await asyncio.to_thread(self._similar.find, folder, text)) is None:
            if looks == MOST_LOOKS or not self.daemon.prepares:
                raise RedraftError(
                    f"{folder} has no index yet ({self.daemon.doing}); try again later"
                )
            looks += 1
            await asyncio.sleep(LOOK_S)
        return similar

    async def close(self) -> None:
        """End what was begun for the client. Raises RedraftError."""
        await self._edits.close()
        await self.daemon.close()

    # Making an edit

    async def _edited(
        self,
        call: _Edit,
        paths: Sequence[str],
        files: AgentFiles,
        plan: Callable[[Sequence[AgentFile]], Awaitable[PlannedEdit]],
        new: Collection[str] = (),
    ) -> dict[str, Any]:
        """Plan an edit, or take one that was previewed, and write it where that is asked for.
        ``new``: paths that need not exist."""
        read_files = [files.read(path, may_be_new=path in new) for path in paths]
        if len({file.place for file in read_files}) < len(read_files):
            raise EditRefused(f"a file is named twice; {ONE_SNIPPET}")
        async with AsyncExitStack() as held:
            for file_place in sorted(str(file.place) for file in read_files):
                await held.enter_async_context(self._locks[file_place])
            # An edit that was made meanwhile counts.
            read_files = [files.read(path, may_be_new=path in new) for path in paths]
            for file in read_files:
                await self._refuse_unsaved(file)
            edit = self._previewed(call.hash, read_files) if call.hash else await plan(read_files)
            for file, _ in edit.changes:
                await self._refuse_unsaved(file)
            answer = {"diff": edit.diff, "how": edit.how, "note": edit.note}
            if call.preview:
                self._keep(edit)
                return {**answer, "written": False, "hash": edit.hash}
            changes = [(file, text) for file, text in edit.changes if text != file.text]
            if changes:
                await asyncio.to_thread(replace_all, changes)
            return {**answer, "written": bool(changes), "hash": edit.hash}

    def _keep(self, edit: PlannedEdit) -> None:
        self._previews[edit.hash] = edit
        while len(self._previews) > MOST_PREVIEWS:
            self._previews.popitem(last=False)

    def _previewed(self, preview_hash: str, read_files: Sequence[AgentFile]) -> PlannedEdit:
        edit = self._previews.get(preview_hash)
        if edit is None:
            raise EditRefused("there is no such preview any more; ask for it again")
        paths = [file.place for file, _ in edit.changes]
        if paths[: len(read_files)] != [file.place for file in read_files]:
            raise EditRefused("that preview is of another file; give its own hash")
        return edit

    async def _refuse_unsaved(self, file: AgentFile) -> None:
        saved = {"path": str(file.place), "text": file.text}
        if await self.daemon.request("redraft/unsaved", saved):
            raise EditRefused(
                f"{file.path} has unsaved changes in an editor; have it saved there, then try again"
            )

    async def _rewritten(self, file: AgentFile, call: EditFile) -> PlannedEdit:
        text = file.text
        offsets_of_lines(text, call.lines, file.path)
        first, _, last = call.lines.partition(":")
        uri = file.place.as_uri()
        document = {"uri": uri, "languageId": language_of_path(file.path), "version": 1}
        await self.daemon.notify(
            "textDocument/didOpen", {"textDocument": {**document, "text": text}}
        )
        try:
            line = split_lines(text)[int(last or first) - 1]
            units = len(line.removesuffix(line_end(line)).encode("utf-16-le")) // 2
            answer = await self.daemon.request(
                "redraft/edit",
                {
                    "textDocument": {"uri": uri, "version": 1},
                    "range": {
                        "start": {"line": int(first) - 1, "character": 0},
                        "end": {"line": int(last or first) - 1, "character": units},
                    },
                    "instruction": call.instruction,
                },
            )
        finally:
            await self.daemon.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
        opened = Document(uri, "", 1, text)

        def offset(end: dict[str, int]) -> int:
            return opened.offset(opened.position(end["line"], end["character"], "utf-16"))

        hunks = [
            TextEdit(offset(span["start"]), offset(span["end"]), hunk["newText"])
            for hunk in answer["hunks"]
            for span in (hunk["range"],)
        ]
        return PlannedEdit(((file, apply_hunks(text, hunks)),), "model", answer["warning"])


def _line_of(excerpt: str, text: str) -> int:
    """Return the line where a part of a text begins, from 1; 0 where there is none."""
    offset = text.find(excerpt)
    return text.count("\n", 0, offset) + 1 if excerpt and offset >= 0 else 0


CALLS: dict[str, tuple[type[Any], Callable[..., Awaitable[dict[str, Any]]]]] = {
    "apply_edit": (ApplyEdit, AgentTools.apply_edit),
    "edit_file": (EditFile, AgentTools.edit_file),
    "rename_symbol": (RenameSymbol, AgentTools.rename_symbol),
    "find_similar": (FindSimilar, AgentTools.find_similar),
}
"""The tools by name, each with its arguments."""
