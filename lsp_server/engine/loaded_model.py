"""A model as it is loaded, with what compiles meanwhile and its status."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lsp_server.engine import warming
from lsp_server.engine.compiling import CompileTask, CompilingBehind, compile_at_once
from lsp_server.shared.contract.options import EngineOptions
from lsp_server.shared.contract.status import EngineStatus
from lsp_server.tasks.completion.task import prompt_length
from lsp_server.tasks.next_edits.formats import FORMATS, fits, format_for
from lsp_server.tasks.next_edits.model_names import model_names
from operating_system.system import TRANSLATED, is_translated

if TYPE_CHECKING:
    from accel.decoding.engine import Engine
    from accel.drafting.base import Drafter


class LoadedModel:
    """An engine, and that of a draft model where there is one."""

    def __init__(self, engine: Engine, draft_engine: Engine | None = None) -> None:
        self.engine = engine
        self.engines = [engine, *([draft_engine] if draft_engine is not None else [])]
        self.prompt_length = prompt_length(engine)
        self.edits_behind = self.sampling_behind = CompilingBehind([])

    @classmethod
    def open(
        cls,
        options: EngineOptions,
        tasks: list[CompileTask],
        report: Callable[[str], None],
        on_change: Callable[[], None],
        *,
        later: bool,
    ) -> LoadedModel:
        """``tasks``: what is not compiled yet. ``later``: what drafts edits and what samples is
        compiled after the first answers, and ``on_change`` told. Raises AccelError."""
        from accel.decoding.engine import Engine

        edits = [task for task in tasks if task.name == "edits" and later]
        sampling = [task for task in tasks if task.name == "sampling" and later]
        compile_at_once([task for task in tasks if task not in edits + sampling], report)
        budget = options.kv_megabytes << 20
        engine = Engine.open(options, preloads=not later, kv_budget=budget)
        draft_engine = None
        if options.draft_model:
            draft = replace(options, path=options.draft_model)
            draft_engine = Engine.open(draft, preloads=not later)
        model = cls(engine, draft_engine)
        if draft_engine is not None:
            # One of another vocabulary is refused here.
            model.copy_drafter()
        model.edits_behind = CompilingBehind(edits, on_change)
        model.sampling_behind = CompilingBehind(sampling)
        return model

    def drafts_edits(self) -> bool:
        """Return whether what drafts edits is compiled."""
        if self.edits_behind.is_over:
            warming.warm_up_edits()
        return self.edits_behind.is_over

    def copy_drafter(self) -> Drafter:
        """The drafter of edits: copies of the original, and new text by the draft model."""
        from accel.drafting.copy.drafter import CopyDrafter

        tokenizer = self.engine.tokenizer
        copies = CopyDrafter(tokenizer, end=tuple(sorted(self.engine.end_tokens))[:1])
        if len(self.engines) == 1:
            return copies
        from accel.decoding.draft_model import DraftModelDrafter
        from accel.drafting.reuse_or_generate import ReuseOrGenerateDrafter

        return ReuseOrGenerateDrafter(copies, DraftModelDrafter(self.engines[1], tokenizer.sha256))

    def keep_costs(self) -> bool:
        """Store what forwards cost of late; return whether the status says something else now."""
        changed = [engine.keep_costs() for engine in self.engines]
        if any(changed):
            self.prompt_length = prompt_length(self.engine)
        return any(changed)

    def status(self, path: str) -> EngineStatus:
        """Return the status of the model at ``path``."""
        from accel.text.chat import takes_tools

        engine = self.engine
        return EngineStatus(
            state="ready",
            model=engine.name,
            dtype=engine.formats,
            places=engine.model.capability.requests,
            tokenizer=engine.tokenizer.sha256,
            fills=engine.fills,
            max_tokens=engine.max_positions,
            chats=engine.tokenizer.chat_template is not None,
            takes_tools=takes_tools(engine.tokenizer.chat_template),
            notice=_notice(engine),
            **_next_edits(engine, path),
            compiling="" if self.edits_behind.is_over else "what drafts edits",
            computed_by=engine.model.computed_by,
            prompt_seconds=tuple(self.prompt_length.seconds),
        )

    def close(self) -> None:
        """End what compiles meanwhile."""
        self.edits_behind.close()
        self.sampling_behind.close()


def _next_edits(engine: Engine, path: str) -> dict[str, Any]:
    """In which format the model is asked for next edits, empty for none, and those whose tokens
    its vocabulary has."""

    def has_token(name: str) -> bool:
        return engine.tokenizer.special(name) is not None

    # Only adapters of the laboratory's training say how many lines around an edit they were shown.
    is_ours = engine.tokenizer.edit_lines is not None
    next_edit_format = format_for(model_names(path), has_token, is_ours=is_ours)
    return {
        "next_edit_format": next_edit_format.name if next_edit_format is not None else "",
        "next_edit_formats": tuple(each.name for each in FORMATS.values() if fits(each, has_token)),
    }


def _notice(engine: Engine) -> str:
    """Return problems of the prompt formats and notes on how the model is computed, if any."""
    from accel.text.format_check import format_problems

    problems = format_problems(engine.tokenizer)
    if engine.adaptive_tokens == "two-step" and not engine.model.adaptive_tokens:
        problems.append("it has no adaptive tokens: what the workspace holds drafts alone")
    notes = [engine.notice, TRANSLATED if is_translated() else ""]
    return "; ".join([*problems, *filter(None, notes)])
