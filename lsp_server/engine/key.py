"""Which engine settings ask for."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Literal

from accel.model_options import part_of
from lsp_server.contract.options import EngineOptions, EngineSettings
from lsp_server.settings import ServerSettings, Settings

Purpose = Literal["completion", "edits"]


@dataclass(frozen=True, slots=True)
class EngineKey:
    """An engine of this machine, or of a server that answers in its place where that has an
    address."""

    options: EngineOptions
    server: ServerSettings = field(default_factory=ServerSettings)

    @classmethod
    def of(cls, settings: Settings, purpose: Purpose = "completion") -> EngineKey:
        """The engine that these settings ask for. Two purposes with one model share one engine."""
        path = settings.completion_model if purpose == "completion" else settings.edit_model
        completes = path == settings.completion_model
        of_model = replace(
            part_of(settings.model, EngineSettings),
            path=path,
            adaptive_tokens=settings.model.adaptive_tokens and completes,
        )
        options = EngineOptions(
            **asdict(of_model),
            draft_model=settings.edit.draft_model if path == settings.edit_model else "",
            common=settings.index.common != "none",
        )
        return cls(options, settings.server if settings.server.url else ServerSettings())

    @property
    def local(self) -> EngineKey | None:
        """The engine of this machine that answers while the server does not; None where nothing
        is to answer then, and without a server."""
        if not self.server.url:
            return None
        if self.server.fallback == "none" or not self.options.path:
            return None
        return EngineKey(self.options)
