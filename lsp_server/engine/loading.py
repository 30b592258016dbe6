"""A model in the engine process: loaded, with what it learnt, its drafters and its status."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lsp_server.engine import warming
from lsp_server.engine.compiling import CompileTask, CompilingBehind, compile_at_once
from lsp_server.engine.garbage import no_collection
from lsp_server.engine.kv_store import KvStore, kv_store_of
from lsp_server.engine.workspaces import WorkspaceIndexes
from lsp_server.shared.contract.options import EngineOptions
from lsp_server.shared.contract.prompt_length import PromptLength
from lsp_server.shared.contract.status import EngineStatus
from lsp_server.tasks.completion.cross_file import CrossFile
from lsp_server.tasks.completion.missing_line import LineFitter
from lsp_server.tasks.generating import prompt_length, replace_surrogates
from lsp_server.tasks.next_edits.formats import FORMATS, fits, format_for
from lsp_server.tasks.next_edits.model_names import model_names
from lsp_server.tasks.pool import Pool

if TYPE_CHECKING:
    from accel.draft_tree import TokenArray
    from accel.drafting.base import Drafter
    from accel.drafting.history import History
    from accel.drafting.retrieval.calibration import Calibration
    from accel.engine import Engine
    from accel.session import Session
    from accel.text.tokenizer import Tokenizer

Cancelled = Callable[[], bool]

MAX_SESSIONS = 1024
"""A team's documents. The engine has a budget for what their KV caches hold together."""
MAX_DRAFTERS = 64
"""Each knows what its workspace wrote of late."""


def never() -> bool:
    return False


class EngineLoading:
    """A model, its sessions and drafters, and the indexes of the workspaces that are open. Loads at
    first use."""

    def __init__(
        self,
        options: EngineOptions,
        *,
        caches: Path | None = None,
        defer: bool = False,
        measures_later: bool = False,
    ) -> None:
        """``caches``: the folder for KV caches of documents; None: they are not kept.
        ``defer``: at the first start greedy completions do not wait until what drafts edits and
        what samples is compiled, and edits are not drafted until then.
        ``measures_later``: see ``Engine.load``; ``measure`` goes on with it."""
        self.on_change: Callable[[], None] = lambda: None
        """Told by another thread that ``status`` says something else now."""
        self._defers = defer
        self._edits_behind = self._sampling_behind = CompilingBehind([])
        self._options = options
        self._measures_later = measures_later
        self._caches = caches
        self._seen_documents: set[tuple[str, str]] = set()
        """Documents, by workspace and path, whose caches on disk were looked for."""
        self._draft_engine: Engine | None = None
        self._engine: Engine | None = None
        self._sessions: Pool[Session] = Pool(MAX_SESSIONS)
        self._drafters: Pool[Drafter] = Pool(MAX_DRAFTERS)
        self._calibration: Calibration | None = None
        self._history: History | None = None
        self._fitter: LineFitter | None = None
        self._prompt_length = PromptLength(())
        self._kv_store: KvStore | None = None
        self._cold_parts: list[Callable[[Cancelled], object]] = []
        """What is left to warm up."""
        self._is_settled = False
        self._cross_file = CrossFile(self._encode, self._decode)
        self.indexes = WorkspaceIndexes(options.path or None, options.common)

    def _encode(self, text: str) -> TokenArray:
        return self.engine.tokenizer.encode(replace_surrogates(text))

    def _decode(self, tokens: TokenArray) -> str:
        return self.engine.tokenizer.decode(tokens)

    @property
    def engine(self) -> Engine:
        """The loaded engine."""
        self.load()
        assert self._engine is not None
        return self._engine

    def load(self, report: Callable[[str], None] = lambda message: None) -> None:
        """Load the model; ``report`` what takes long. Raises AccelError."""
        if self._engine is None:
            with no_collection():
                self._load(report)

    def _load(self, report: Callable[[str], None]) -> None:
        from accel.engine import Engine

        parts = self._parts_to_compile()
        edits = [part for part in parts if part.name == "edits" and self._defers]
        sampling = [part for part in parts if part.name == "sampling" and self._defers]
        compile_at_once([part for part in parts if part not in edits + sampling], report)
        options = self._options
        self._engine = Engine.open(options, measures_later=self._measures_later)
        self._share_tokenizer(self._engine.tokenizer)
        if options.draft_model:
            draft = replace(options, path=options.draft_model)
            self._draft_engine = Engine.open(draft, measures_later=self._measures_later)
            self._reuse()
        self._fitter = LineFitter(self._engine)
        self._prompt_length = prompt_length(self._engine)
        self._edits_behind = CompilingBehind(edits, self.on_change)
        self._sampling_behind = CompilingBehind(sampling)
        self._open_saved_state()

    def _parts_to_compile(self) -> list[CompileTask]:
        return warming.parts_to_compile(self._options, self.indexes.compiled_parts)

    def _share_tokenizer(self, tokenizer: Tokenizer) -> None:
        """Have lookups use the tokenizer of the model's own side."""
        from repo_index.tokens import TextTokenizer

        size = tokenizer.vocabulary_size
        self.indexes.share(TextTokenizer.sharing(tokenizer.fast, tokenizer.sha256, size))

    def _open_saved_state(self) -> None:
        from accel.drafting.history import History
        from accel.drafting.retrieval.calibration import Calibration

        name = f"{self.engine.name} {self.engine.tokenizer.sha256}"
        self._calibration = Calibration.of_model(name)
        self._history = History()
        if self._caches is not None:
            megabytes = self._options.disk_cache_megabytes
            self._kv_store = kv_store_of(self.engine, megabytes, self._caches)

    def _drafts_edits(self) -> bool:
        if self._edits_behind.is_over:
            warming.warm_up_edits()
        return self._edits_behind.is_over

    def _mixture(self) -> Drafter:
        from accel.drafting import default_drafter

        return default_drafter(
            self.engine.tokenizer, calibration=self._calibration, history=self._history
        )

    def _reuse(self) -> Drafter:
        from accel.drafting.copy.drafter import CopyDrafter

        tokenizer = self.engine.tokenizer
        copies = CopyDrafter(tokenizer, end=tuple(sorted(self.engine.end_tokens))[:1])
        if self._draft_engine is None:
            return copies
        from accel.drafting.draft_model import DraftModelDrafter
        from accel.drafting.reuse_or_generate import ReuseOrGenerateDrafter

        model = DraftModelDrafter(self._draft_engine, tokenizer.sha256)
        return ReuseOrGenerateDrafter(copies, model)

    def measure(self, interrupted: Cancelled = never) -> bool:
        """Nothing came for a moment: measure what was left for later, until something comes.
        Whether the status says something else now."""
        engines = [engine for engine in (self._engine, self._draft_engine) if engine is not None]
        changed = [engine.measure(interrupted) for engine in engines]
        if any(changed):
            self._prompt_length = prompt_length(self.engine)
        return any(changed)

    def status(self) -> EngineStatus:
        """What is known of the engine now."""
        if (engine := self._engine) is None:
            return EngineStatus(model=self._options.path, dtype=self._options.dtype)
        return EngineStatus(
            state="ready",
            model=engine.name,
            dtype=engine.formats,
            places=engine.model.capability.requests,
            kv_bytes=sum(session.nbytes for session in self._sessions),
            tokenizer=engine.tokenizer.sha256,
            fills=engine.fim_order is not None,
            max_tokens=engine.max_positions,
            notice=self._notice(engine),
            **self._next_edits(engine),
            compiling="" if self._edits_behind.is_over else "what drafts edits",
            computed_by=engine.model.computed_by,
            prompt_seconds=tuple(self._prompt_length.seconds),
            workspaces=tuple(self.indexes.folders),
        )

    def _next_edits(self, engine: Engine) -> dict[str, Any]:
        """In which format the model is asked for next edits, empty for none, and those whose tokens
        its vocabulary has."""

        def has_token(name: str) -> bool:
            return engine.tokenizer.special(name) is not None

        # Only adapters say how many lines around an edit they were shown.
        is_ours = engine.tokenizer.edit_lines is not None
        known = format_for(model_names(self._options.path), has_token, is_ours=is_ours)
        return {
            "next_edit_format": known.name if known is not None else "",
            "next_edit_formats": tuple(
                one.name for one in FORMATS.values() if fits(one, has_token)
            ),
        }

    def _notice(self, engine: Engine) -> str:
        """What is wrong with the model's prompt formats, and what to know of how it is computed;
        empty where nothing is."""
        from accel.text.families import Order
        from accel.text.format_check import format_problems

        problems = format_problems(engine.tokenizer)
        if engine.fim_order is Order.PREFIX_ALONE:
            problems.append("in a trial the text after the cursor did not help it: it is left out")
        return "; ".join([*problems, *filter(None, [engine.notice])])

    def interrupt(self) -> None:
        """Have the job that is decoded now ask whether it goes on. For other threads."""
        if (engine := self._engine) is not None:
            engine.interrupt()

    def rest(self) -> None:
        """Nothing came for a while: pages of mapped indexes go back to the system."""
        for folder in self.indexes.folders:
            self.indexes.datastore(folder).release()

    def close(self) -> None:
        """Let go of the model and the indexes."""
        if self._calibration is not None:
            self._calibration.save_new()
        self._edits_behind.close()
        self._sampling_behind.close()
        self._sessions.clear()
        self._drafters.clear()
        self.indexes.clear()
        self._engine = self._draft_engine = None
