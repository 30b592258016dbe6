"""The options that start an engine: one dataclass, from the settings and the command line to the
process, here or on another machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from accel.files.model_options import ModelOptions, option

SERVER_CACHES: dict[str, Any] = {"kv_megabytes": 1 << 20, "disk_cache_megabytes": 0}
"""Options of a team's server: half of the free memory is its limit, and nothing is kept on disk."""


@dataclass(frozen=True, slots=True)
class EngineSettings(ModelOptions):
    """The engine's part of the section ``redraft.model``."""

    disk_cache_megabytes: int = option(
        512,
        "What the model computed of documents of late is kept on disk, in at most so many "
        "megabytes, so that the first suggestion is quick after a restart, too; 0: nothing is. "
        "Never that of a document that may hold secrets.",
        low=0,
        high=1 << 20,
    )


@dataclass(frozen=True, slots=True)
class EngineOptions(EngineSettings):
    """The options that distinguish engines. Windows with equal options share one."""

    draft_model: str = ""
    """A smaller model of the same tokenizer, which drafts new text of edits; empty: none."""
    kv_megabytes: int = 2048
    """Of keys and values at most, on a CPU no more than half of the memory that is free when the
    model is loaded."""
    common: bool = True
    """Look things up in the common datastore, too."""

    @property
    def models(self) -> list[str]:
        """The paths of the model and, if there is one, of the draft model."""
        return [self.path, *([self.draft_model] if self.draft_model else [])]
