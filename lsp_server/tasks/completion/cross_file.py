"""Chooses text of other files for a prompt, from the index and within a token budget: imported
files, other open ones, then the places most like the text at the cursor.

What was chosen for a document stays while other files change and the cursor moves, and with it the
prompt's KV cache; see ``fresh`` for when it is chosen anew.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from lsp_server.shared.contract.jobs import CompletionJob, ContextSnippet, is_scope_of
from lsp_server.tasks.completion.similar_places import IndexedFiles, similar_places
from lsp_server.text.syntax.imports import SCANNED_CHARACTERS, imports_of
from lsp_server.text.syntax.outline import outline
from repo_index.secrets import secret_content

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from repo_index.datastore import IndexSnapshot

MOST_SNIPPETS = 6
SMALLEST_TOKENS = 24
"""A snippet that would have less room is left out, and so is all that comes after it."""
CHARACTERS_PER_TOKEN = 3
MOST_CHARACTERS = 1 << 18
"""Open files that are longer are not looked at."""
STAY_LINES = 40
"""Similar places are looked for again when the cursor has moved so far."""
DOCUMENTS = 64

Encode = Callable[[str], "NDArray[np.int32]"]
Decode = Callable[["NDArray[np.int32]"], str]


@dataclass(frozen=True, slots=True)
class Chosen:
    """The snippets chosen for a document, and the state that they were chosen for."""

    line: int
    similar: list[ContextSnippet]
    budget: int
    imports: str
    around: tuple[object, ...]
    """Of the other files, as they were."""
    snippets: list[ContextSnippet]


class CrossFile:
    """Snippets for the documents of one model. Used by the thread that decodes."""

    def __init__(self, encode: Encode, decode: Decode) -> None:
        self._encode = encode
        self._decode = decode
        self._chosen: OrderedDict[tuple[str, str], Chosen] = OrderedDict()
        self._secret_checks: dict[str, tuple[str, bool]] = {}
        """Of open files: the text that was looked through last, and whether it holds secrets."""

    def snippets(
        self, job: CompletionJob, snapshot: IndexSnapshot | None, budget: int
    ) -> list[ContextSnippet]:
        """Snippets of at most ``budget`` tokens for a job, in the order of the prompt."""
        if budget < SMALLEST_TOKENS:
            return []
        files = None if snapshot is None else IndexedFiles(snapshot)
        chosen = self._chosen.get((job.scope, job.path))
        if chosen is None or not self._holds(chosen, job, files, budget):
            chosen = self._choose(job, files, budget, _near(chosen, job))
        self.use(job, chosen)
        return chosen.snippets

    def fresh(
        self, job: CompletionJob, snapshot: IndexSnapshot | None, budget: int
    ) -> Chosen | None:
        """Return the snippets that would be chosen now if they differ from those in use."""
        chosen = self._chosen.get((job.scope, job.path))
        if chosen is None or budget < SMALLEST_TOKENS:
            return None
        files = None if snapshot is None else IndexedFiles(snapshot)
        near = _near(chosen, job)
        if near is not None and chosen.around == _around(job, files):
            return None
        fresh = self._choose(job, files, budget, near)
        if fresh.snippets != chosen.snippets:
            return fresh
        self.use(job, fresh)
        return None

    def use(self, job: CompletionJob, chosen: Chosen) -> None:
        """``chosen`` is what is in the prompts of a document from now on."""
        document = job.scope, job.path
        self._chosen[document] = chosen
        self._chosen.move_to_end(document)
        while len(self._chosen) > DOCUMENTS:
            self._chosen.popitem(last=False)

    def state_of(self, document: tuple[str, str]) -> dict[str, Any]:
        """Return the snippets in use for a document (scope and path), as JSON for ``recall``."""
        chosen = self._chosen.get(document)
        return {} if chosen is None else asdict(chosen)

    def recall(self, job: CompletionJob, state: dict[str, Any]) -> None:
        """Use a state of ``state_of``. Raises KeyError, TypeError or ValueError for other data."""
        if not state:
            return
        snippets, similar = (
            [ContextSnippet(str(snippet["path"]), str(snippet["text"])) for snippet in state[name]]
            for name in ("snippets", "similar")
        )
        line, budget, imports = int(state["line"]), int(state["budget"]), str(state["imports"])
        # The other files may have changed since: ``fresh`` looks at them again.
        self.use(job, Chosen(line, similar, budget, imports, (), snippets))

    def forget(self, workspace: str, path: str | None = None) -> None:
        """A workspace or one document of it was closed."""
        for scope, of in list(self._chosen):
            if is_scope_of(scope, workspace) and path in (None, of):
                del self._chosen[scope, of]

    def _holds(
        self, chosen: Chosen, job: CompletionJob, files: IndexedFiles | None, budget: int
    ) -> bool:
        """Return True if the chosen snippets may still be in a prompt of the document."""
        if (chosen.budget, chosen.imports) != (budget, _import_part(_head(job))):
            return False
        opened = self._harmless(job.snippets)
        return all(
            snippet.path in opened or (files is not None and files.tokens(snippet.path) is not None)
            for snippet in chosen.snippets
        )

    def _harmless(self, snippets: list[ContextSnippet]) -> dict[str, ContextSnippet]:
        harmless: dict[str, ContextSnippet] = {}
        for snippet in snippets:
            if len(snippet.text) > MOST_CHARACTERS:
                continue
            text, is_secret = self._secret_checks.pop(snippet.path, (None, True))
            if text != snippet.text:
                is_secret = bool(secret_content(snippet.text))
            self._secret_checks[snippet.path] = snippet.text, is_secret
            if not is_secret:
                harmless[snippet.path] = snippet
        while len(self._secret_checks) > DOCUMENTS:
            del self._secret_checks[next(iter(self._secret_checks))]
        return harmless

    def _choose(
        self, job: CompletionJob, files: IndexedFiles | None, budget: int, near: Chosen | None
    ) -> Chosen:
        """``near``: what was chosen for a place nearby, whose similar places are still similar."""
        head = _head(job)
        if near is not None:
            line, similar = near.line, near.similar
        else:
            line, similar = _line(job), [] if files is None else self._similar(job, files)
        return Chosen(
            line,
            similar,
            budget,
            _import_part(head),
            _around(job, files),
            self._within(budget, self._candidates(job, head, files, similar)),
        )

    def _similar(self, job: CompletionJob, files: IndexedFiles) -> list[ContextSnippet]:
        query = self._encode(job.prefix[-_QUERY:] + job.suffix[: _QUERY // 4])
        texts = (
            (path, self._decode(tokens)) for path, tokens in similar_places(files, query, job.path)
        )
        return [ContextSnippet(path, whole_lines(text)) for path, text in texts]

    def _candidates(
        self,
        job: CompletionJob,
        head: str,
        files: IndexedFiles | None,
        similar: list[ContextSnippet],
    ) -> Iterator[tuple[ContextSnippet, tuple[str, ...]]]:
        """Snippets and the names that matter in them, the most helpful first, each path once."""
        opened = self._harmless(job.snippets)
        included = {job.path}
        for imported in imports_of(head, job.path):
            for path in imported.paths:
                if path in included:
                    break
                snippet = opened.get(path) or self._indexed(files, path)
                if snippet is not None:
                    included.add(path)
                    yield snippet, imported.names
                    break
        for path, snippet in opened.items():
            if path not in included:
                included.add(path)
                yield snippet, ()
        for snippet in similar:
            # A file may have left the index since: deleted, ignored, or it holds a secret now.
            gone = files is None or files.tokens(snippet.path) is None
            if snippet.path not in included and not gone:
                included.add(snippet.path)
                yield snippet, ()

    def _indexed(self, files: IndexedFiles | None, path: str) -> ContextSnippet | None:
        tokens = None if files is None else files.tokens(path)
        return None if tokens is None else ContextSnippet(path, self._decode(tokens))

    def _within(
        self, budget: int, candidates: Iterator[tuple[ContextSnippet, tuple[str, ...]]]
    ) -> list[ContextSnippet]:
        """Outlines that fit: each gets at most half of what is left, the last all of it."""
        chosen: list[ContextSnippet] = []
        for snippet, names in candidates:
            share = budget // 2 if len(chosen) + 1 < MOST_SNIPPETS else budget
            if share < SMALLEST_TOKENS:
                break
            characters = share * CHARACTERS_PER_TOKEN
            fitting = ContextSnippet(snippet.path, outline(snippet.text, characters, names))
            while (cost := self._cost(fitting)) > share and characters > _SHORTEST:
                characters = characters * share // cost - 1
                fitting = ContextSnippet(snippet.path, outline(snippet.text, characters, names))
            if cost > share or not fitting.text.strip():
                continue
            budget -= cost
            chosen.append(fitting)
            if len(chosen) == MOST_SNIPPETS:
                break
        return chosen

    def _cost(self, snippet: ContextSnippet) -> int:
        return len(self._encode(f"{snippet.path}\n{snippet.text}")) + 1


_QUERY = 1_200
_SHORTEST = 30


def _head(job: CompletionJob) -> str:
    return job.head or job.prefix[:SCANNED_CHARACTERS]


def _line(job: CompletionJob) -> int:
    return job.prefix.count("\n")


def _near(chosen: Chosen | None, job: CompletionJob) -> Chosen | None:
    """Return ``chosen`` unless the cursor has moved elsewhere since."""
    return chosen if chosen is not None and abs(_line(job) - chosen.line) <= STAY_LINES else None


def _around(job: CompletionJob, files: IndexedFiles | None) -> tuple[object, ...]:
    """Changes with what may be chosen, not with what is typed into the document itself."""
    opened = tuple((snippet.path, snippet.text) for snippet in job.snippets)
    return opened, () if files is None else files.state


def _import_part(head: str) -> str:
    """Return the lines of a text that may import: all that the choice of files depends on."""
    words = ("import", "from ", "#include", "mod ", "pub mod", "require(", "export")
    return "\n".join(line for line in head.split("\n") if any(word in line for word in words))


def whole_lines(text: str) -> str:
    """Return a stretch of a text without the parts of lines at its ends, where it has whole
    ones."""
    first, last = text.find("\n") + 1, text.rfind("\n")
    return text[first:last] if 0 < first < last else text
