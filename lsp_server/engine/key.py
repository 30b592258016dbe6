"""What tells one engine process from another."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

from lsp_server.settings import ServerSettings, Settings

Purpose = Literal["completion", "edits"]


@dataclass(frozen=True, slots=True)
class EngineKey:
    """What tells one engine process from another. Windows that want the same share it."""

    model: str
    dtype: str
    device: str
    threads: int
    common: bool
    adaptive_tokens: bool = False
    draft_model: str = ""
    disk_cache_megabytes: int = 0
    backend: str = "auto"
    kv_type: str = "f16"
    gpu_layers: int | None = None
    """None: as many as have room there."""
    flash_attention: str = "auto"
    server: ServerSettings = field(default_factory=ServerSettings)
    """The server that answers in place of this machine, where it has an address."""

    @classmethod
    def of(cls, settings: Settings, purpose: Purpose = "completion") -> EngineKey:
        """The engine that these settings ask for. Two purposes with one model share one engine."""
        model = settings.model
        path = settings.completion_model if purpose == "completion" else settings.edit_model
        return cls(
            path,
            model.dtype,
            model.device,
            model.threads,
            settings.index.common != "none",
            model.adaptive_tokens and path == settings.completion_model,
            settings.edit.draft_model if path == settings.edit_model else "",
            model.disk_cache_megabytes,
            model.backend,
            model.kv_type,
            None if model.gpu_layers == "auto" else model.gpu_layers,
            model.flash_attention,
            settings.server if settings.server.url else ServerSettings(),
        )

    @property
    def local(self) -> EngineKey | None:
        """The engine of this machine that answers while the server does not; None where nothing
        is to answer then, and without a server."""
        if not self.server.url:
            return None
        if self.server.fallback == "none" or not self.model:
            return None
        return replace(self, server=ServerSettings())

    @property
    def models(self) -> list[str]:
        """What is loaded: the model, and the draft model where there is one."""
        return [self.model, *([self.draft_model] if self.draft_model else [])]

    def arguments(self) -> list[str]:
        """The command line of the engine process."""
        options = ["--model", self.model, "--dtype", self.dtype, "--device", self.device]
        options += ["--threads", str(self.threads), "--backend", self.backend]
        options += ["--kv-type", self.kv_type]
        layers = "auto" if self.gpu_layers is None else str(self.gpu_layers)
        options += ["--gpu-layers", layers, "--flash-attention", self.flash_attention]
        options += ["--disk-cache", str(self.disk_cache_megabytes)]
        options += [] if self.common else ["--no-common"]
        options += ["--draft-model", self.draft_model] if self.draft_model else []
        return [*options, *(["--adaptive-tokens"] if self.adaptive_tokens else [])]
