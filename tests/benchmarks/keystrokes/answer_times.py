"""The times of an answer of the model of next edits, step by step; for measurements."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from lsp_server.shared.contract.jobs import JobResult


@dataclass(slots=True)
class AnswerTimes:
    """Times in seconds: those of the engine, and from asking where nothing else is said."""

    asked: float = field(default_factory=time.monotonic)
    """When, by the clock of all processes."""
    first_change_s: float = 0.0
    """Until the first change is known, or that there is none."""
    whole_s: float = 0.0
    prompt_tokens: int = 0
    prompt_rows: int = 0
    """Tokens of the prompt that were not held of an earlier one."""
    prompt_s: float = 0.0
    text_tokens: int = 0
    text_forwards: int = 0
    text_rows: int = 0
    """Of its forwards, drafts that were not accepted among them."""
    text_s: float = 0.0

    def changed(self) -> None:
        """Changes are known."""
        self.first_change_s = self.first_change_s or self._now_s()

    def ended(self, result: JobResult) -> None:
        """The answer is whole."""
        self.whole_s = self._now_s()
        self.prompt_tokens = result.prompt_tokens
        self.prompt_rows = result.prompt_rows
        self.prompt_s = result.prefill_seconds
        self.text_tokens, self.text_forwards = result.tokens, result.forwards
        self.text_rows = result.batched_rows - self.prompt_rows
        self.text_s = result.seconds

    def _now_s(self) -> float:
        return time.monotonic() - self.asked
