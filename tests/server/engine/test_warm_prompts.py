"""What is known of a prompt stays known while other files change."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "decoding"))

from tiny_models import save

from accel.errors import InvalidRequest
from accel.text import prompts
from accel.text.families import Order
from accel.text.special_tokens import fim_format_of
from lsp_server.engine.service import EngineService
from lsp_server.shared.contract.jobs import CompletionJob, ContextSnippet, GenerateJob
from lsp_server.shared.contract.notes import CloseBuffer
from lsp_server.shared.contract.options import EngineOptions
from tests.prefill_alone import prefill

TEXT = "".join(f"def function_{n}(value):\n    return value + {n}\n" for n in range(9))
BEFORE = ContextSnippet("prices.py", "def price_of(shape):\n    return 1\n")
AFTER = ContextSnippet("prices.py", "def price_of(shape, discount):\n    return 2\n")
JOB = CompletionJob("", "a.py", TEXT, "", snippets=[BEFORE], context_tokens=128, max_tokens=4)
CHANGED = replace(JOB, snippets=[AFTER])


class Watched:
    """A service that has nothing in its caches, and how many tokens were known of each prompt."""

    def __init__(self, service: EngineService, monkeypatch: pytest.MonkeyPatch) -> None:
        self.service = service
        self.start()
        self.left: list[int] = []
        prepare = service.engine.prepare

        def watched(session: object, prompt: list[int]) -> int:
            reused = prepare(session, prompt)  # type: ignore[arg-type]
            self.left.append(len(prompt) - reused)
            return reused

        monkeypatch.setattr(service.engine, "prepare", watched)

    def start(self) -> None:
        """Nothing is known from here on."""
        self.service.caches.sessions.clear()
        self.service.tell(CloseBuffer("", "a.py"))

    def left_to_compute(self, job: CompletionJob) -> int:
        """Tokens of the prompt of a job that are computed for it."""
        self.left.clear()
        self.service.write(job)
        return self.left[0]

    def prompt(self, job: CompletionJob) -> str:
        tokens = self.service.runner.completion_prompt(job).tokens
        return self.service.engine.tokenizer.decode(tokens)


@pytest.fixture
def watched(service: EngineService, monkeypatch: pytest.MonkeyPatch) -> Watched:
    return Watched(service, monkeypatch)


def test_after_an_edit_in_another_file_nothing_is_computed_again(watched: Watched) -> None:
    assert watched.left_to_compute(JOB) > 100
    assert watched.left_to_compute(CHANGED) <= 8
    assert "discount" not in watched.prompt(CHANGED)


def test_the_edit_is_in_the_prompt_once_the_cursor_has_rested(watched: Watched) -> None:
    watched.left_to_compute(JOB)
    prefill(watched.service, CHANGED)
    assert "discount" in watched.prompt(CHANGED)
    assert watched.left_to_compute(CHANGED) <= 8


def test_a_rest_that_is_too_short_leaves_the_prompt_as_it_was(watched: Watched) -> None:
    watched.left_to_compute(JOB)
    prefill(watched.service, CHANGED, lambda: True)
    assert "discount" not in watched.prompt(CHANGED)
    assert watched.left_to_compute(CHANGED) <= 8


OPENED = replace(JOB, prefix=TEXT * 3, suffix=TEXT * 3, opening=True)


def test_a_document_that_was_opened_is_known_wherever_the_first_key_is(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    fim = fim_format_of(watched.service.engine.tokenizer)
    assert fim is not None
    prefix_first = replace(fim, order=Order.PREFIX_FIRST)
    monkeypatch.setattr(prompts, "fim_format_of", lambda _tokenizer: prefix_first)
    text = OPENED.prefix
    for cursor in (len(TEXT), 2 * len(TEXT)):
        watched.start()
        held = prefill(watched.service, OPENED)
        job = replace(JOB, prefix=text[:cursor], suffix=text[cursor:])
        whole = len(watched.service.runner.completion_prompt(job).tokens)
        suffix = len(watched.service.runner.completion_prompt(job).suffix_tokens)
        behind = suffix + 3
        assert held > whole - behind - 8
        assert watched.left_to_compute(job) <= behind + 8


def test_where_the_suffix_stands_first_it_is_that_of_the_documents_start(watched: Watched) -> None:
    prefill(watched.service, OPENED)
    first = replace(JOB, prefix="i", suffix=OPENED.suffix)
    assert watched.left_to_compute(first) <= 12


def test_opening_again_keeps_what_is_known_of_the_cursors_place(watched: Watched) -> None:
    job = replace(JOB, prefix=TEXT, suffix=TEXT)
    assert watched.left_to_compute(job) > 100
    prefill(watched.service, OPENED)
    assert watched.left_to_compute(job) <= 8


def test_a_request_goes_on_from_what_was_read_until_it_came(watched: Watched) -> None:
    rows = watched.service.engine.prefill_rows
    asked = iter([False])
    held = prefill(watched.service, OPENED, lambda: next(asked, True))
    assert held == rows
    first = replace(JOB, prefix="i", suffix=OPENED.suffix)
    whole = len(watched.service.runner.completion_prompt(first).tokens)
    assert watched.left_to_compute(first) == whole - rows


def test_a_ring_for_a_model_whose_prompts_hold_no_other_files_computes_nothing(
    tmp_path: Path,
) -> None:
    """Of llama.vim: other files alone, before anything is asked."""
    service = EngineService(EngineOptions(path=str(save(tmp_path, "llama")), dtype="fp32"))
    service.load()
    ring = GenerateJob("", text="", suffix="", snippets=[BEFORE], max_tokens=0)
    assert prefill(service, ring) == 0
    with pytest.raises(InvalidRequest, match="empty"):
        service.write(replace(ring, max_tokens=1))
    service.close()
