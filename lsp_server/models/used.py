"""Decides which model serves which purpose. Nothing else decides it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from lsp_server.models.choices import Choices, read_choices
from lsp_server.shared.settings import Settings

CHOICE = "redraft models use"
NOTHING = "nothing was chosen"
WRITTEN_MODEL = f"folder, GGUF file or id; else what `{CHOICE}` chose"
"""What a command says of its option for a model."""


@dataclass(frozen=True, slots=True)
class UsedModel:
    """path: empty for none; because: who decided, a setting or ``CHOICE``; passed:
    the model of ``CHOICE`` that an editor's setting goes before, empty where there is none."""

    path: str
    because: str
    passed: str = ""

    @property
    def reason(self) -> str:
        """The source of the decision, in words."""
        return {CHOICE: f"chosen with `{CHOICE}`", NOTHING: NOTHING}.get(
            self.because, f"as the setting {self.because} says"
        )

    def note(self, purpose: str) -> str:
        """Return a sentence about the model for the user; may be empty."""
        if not self.passed:
            return ""
        return f"{purpose}: the setting {self.because} goes before {self.passed} of `{CHOICE}`"


@dataclass(frozen=True, slots=True)
class UsedModels:
    """The model of each purpose. That of drafts has an empty path where there is none."""

    completion: UsedModel
    edits: UsedModel
    next_edits: UsedModel
    drafts: UsedModel

    @property
    def notes(self) -> list[str]:
        """Notes on editor settings that override a choice of the user."""
        notes = (
            self.completion.note("suggestions"),
            self.edits.note("edits"),
            self.next_edits.note("next edits") if self.next_edits != self.completion else "",
            self.drafts.note("drafts"),
        )
        return [note for note in notes if note]

    def put_into(self, settings: Settings) -> Settings:
        """Return settings that name these models."""
        completion = replace(settings.completion, model=self.completion.path)
        edit = replace(settings.edit, model=self.edits.path, draft_model=self.drafts.path)
        next_edits = replace(settings.next_edits, model=self.next_edits.path)
        return replace(settings, completion=completion, edit=edit, next_edits=next_edits)


def used_models(settings: Settings, choices: Choices) -> UsedModels:
    """Return an editor's setting for a purpose comes first, then its ``redraft.model.path``, then
    what the user chose for the purpose; edits and next edits are made by the model of suggestions
    otherwise."""
    setting = ("redraft.model.path", settings.model.path)
    completion = _used(
        [("redraft.completion.model", settings.completion.model), setting], choices.completion
    )
    edits = _used(
        [("redraft.edit.model", settings.edit.model), setting], choices.edits or choices.completion
    )
    own = [("redraft.nextEdits.model", settings.next_edits.model)]
    # Few models know next edits: a choice for them goes before a model that is named for all.
    is_own = settings.next_edits.model or choices.next_edits
    next_edits = _used(own, choices.next_edits) if is_own else completion
    drafts = [("redraft.edit.draftModel", settings.edit.draft_model)]
    # A draft model shares the tokenizer of the model that it was chosen with.
    chosen = choices.drafts if edits.because == CHOICE else ""
    return UsedModels(completion, edits, next_edits, _used(drafts, chosen))


def command_model(written: str | None) -> str:
    """Return the model of suggestions on the command line: what was written there, else what the
    user chose; empty for none."""
    return written or used_models(Settings(), read_choices()).completion.path


def _used(settings: list[tuple[str, str]], chosen: str) -> UsedModel:
    for name, model in settings:
        if model:
            return UsedModel(model, name, chosen if chosen != model else "")
    return UsedModel(chosen, CHOICE if chosen else NOTHING)
