"""What is known of a prompt stays known while other files change."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lsp_server.engine.jobs import CompletionJob, Snippet
from lsp_server.engine.process import EngineService

TEXT = "".join(f"def function_{n}(value):\n    return value + {n}\n" for n in range(9))
BEFORE = Snippet("prices.py", "def price_of(shape):\n    return 1\n")
AFTER = Snippet("prices.py", "def price_of(shape, discount):\n    return 2\n")
JOB = CompletionJob("", "a.py", TEXT, "", snippets=[BEFORE], context_tokens=128, max_tokens=4)
CHANGED = replace(JOB, snippets=[AFTER])


@pytest.fixture(scope="module")
def loaded() -> EngineService:
    service = EngineService(common=False)
    service.load()
    return service


class Watched:
    """A service that has nothing in its caches, and how many tokens were known of each prompt."""

    def __init__(self, service: EngineService, monkeypatch: pytest.MonkeyPatch) -> None:
        service._sessions.clear()
        service.close_buffer("", "a.py")
        self.service = service
        self.left: list[int] = []
        prepare = service.engine.prepare

        def watched(session: object, prompt: list[int]) -> int:
            reused = prepare(session, prompt)  # type: ignore[arg-type]
            self.left.append(len(prompt) - reused)
            return reused

        monkeypatch.setattr(service.engine, "prepare", watched)

    def left_to_compute(self, job: CompletionJob) -> int:
        """Tokens of the prompt of a job that are computed for it."""
        self.left.clear()
        self.service.complete(job)
        return self.left[0]

    def prompt(self, job: CompletionJob) -> str:
        tokens = self.service._completion_prompt(job).tokens
        return self.service.engine.tokenizer.decode(tokens)


@pytest.fixture
def watched(loaded: EngineService, monkeypatch: pytest.MonkeyPatch) -> Watched:
    return Watched(loaded, monkeypatch)


def test_after_an_edit_in_another_file_nothing_is_computed_again(watched: Watched) -> None:
    assert watched.left_to_compute(JOB) > 100
    assert watched.left_to_compute(CHANGED) <= 8
    assert "discount" not in watched.prompt(CHANGED)


def test_the_edit_is_in_the_prompt_once_the_cursor_has_rested(watched: Watched) -> None:
    watched.left_to_compute(JOB)
    watched.service.prefill(CHANGED)
    assert "discount" in watched.prompt(CHANGED)
    assert watched.left_to_compute(CHANGED) <= 8


def test_a_rest_that_is_too_short_leaves_the_prompt_as_it_was(watched: Watched) -> None:
    watched.left_to_compute(JOB)
    watched.service.prefill(CHANGED, lambda: True)
    assert "discount" not in watched.prompt(CHANGED)
    assert watched.left_to_compute(CHANGED) <= 8
