"""What tells one engine process from another."""

from __future__ import annotations

from dataclasses import dataclass

from lsp_server.settings import ModelSettings


@dataclass(frozen=True, slots=True)
class EngineKey:
    """What tells one engine process from another. Windows that want the same share it."""

    model: str
    dtype: str
    device: str
    threads: int
    common: bool
    adaptive_tokens: bool = False

    @classmethod
    def of(cls, settings: ModelSettings, common: bool) -> EngineKey:
        """The engine that these settings ask for."""
        return cls(
            settings.path,
            settings.dtype,
            settings.device,
            settings.threads,
            common,
            settings.adaptive_tokens,
        )

    def arguments(self) -> list[str]:
        """The command line of the engine process."""
        options = ["--model", self.model, "--dtype", self.dtype, "--device", self.device]
        options += ["--threads", str(self.threads)]
        options += [] if self.common else ["--no-common"]
        return [*options, *(["--adaptive-tokens"] if self.adaptive_tokens else [])]
