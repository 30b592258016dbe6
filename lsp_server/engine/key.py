"""The key of an engine, by its settings."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Literal

from accel.files.model_options import part_of
from lsp_server.shared.contract.options import EngineOptions, EngineSettings
from lsp_server.shared.settings import ServerSettings, Settings

Purpose = Literal["completion", "edits", "next edits"]


@dataclass(frozen=True, slots=True)
class EngineKey:
    """An engine of this machine, or of a server that answers in its place where that has an
    address."""

    options: EngineOptions
    server: ServerSettings = field(default_factory=ServerSettings)

    @classmethod
    def of(cls, settings: Settings, purpose: Purpose = "completion") -> EngineKey:
        """Return the key of the engine that these settings ask for. Two purposes with one model
        share one engine. Next edits are made on this machine, even if a server answers the rest."""
        path = {
            "completion": settings.completion_model,
            "edits": settings.edit_model,
            "next edits": settings.next_edit_model,
        }[purpose]
        of_model = replace(part_of(settings.model, EngineSettings), path=path)
        options = EngineOptions(
            **asdict(of_model),
            draft_model=settings.edit.draft_model if path == settings.edit_model else "",
            common=settings.index.common != "none",
        )
        has_server = bool(settings.server.url) and purpose != "next edits"
        return cls(options, settings.server if has_server else ServerSettings())

    @property
    def local(self) -> EngineKey | None:
        """The engine of this machine that answers while the server does not; None where nothing
        is to answer then, and without a server."""
        if not self.server.url:
            return None
        if self.server.fallback == "none" or not self.options.path:
            return None
        return EngineKey(self.options)
