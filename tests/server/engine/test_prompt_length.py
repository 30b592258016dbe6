"""How long a prompt may be follows from the measured speed of the model."""

from __future__ import annotations

import pytest

from lsp_server.engine.service import EngineService
from lsp_server.shared.contract.jobs import CompletionJob
from lsp_server.shared.contract.prompt_length import FEWEST_TOKENS, MOST_TOKENS, STEP, PromptLength
from lsp_server.tasks.completion.task import completion_budget, prompt_length


def measured(tokens_per_s: float, most: int = 8192) -> PromptLength:
    return PromptLength.measured(lambda rows, _: rows / tokens_per_s, 128, most)


def test_a_prompt_is_as_long_as_is_computed_in_the_time() -> None:
    length = measured(1000)
    for seconds in (0.5, 1.5, 3.0):
        tokens = length.tokens(seconds)
        assert tokens % STEP == 0
        assert seconds - STEP / 1000 < tokens / 1000 <= seconds + 1e-9


def test_what_stands_before_makes_tokens_slower() -> None:
    dear = PromptLength.measured(lambda rows, place: rows * (1 + place / 500) / 1000, 64, 8192)
    assert dear.tokens(1.5) < measured(1000).tokens(1.5)


@pytest.mark.parametrize(
    ("speed", "most", "tokens"),
    [(10, 8192, FEWEST_TOKENS), (1e6, 4096, 4096), (1e6, 1 << 20, MOST_TOKENS), (10, 128, 128)],
)
def test_no_prompt_is_too_short_and_none_longer_than_the_model_takes(
    speed: float, most: int, tokens: int
) -> None:
    assert measured(speed, most).tokens(1.5) == tokens


def test_without_a_model_there_is_no_length() -> None:
    assert PromptLength([]).tokens(1.5) == 0


def test_what_a_prompt_takes_is_in_proportion_between_and_beyond_what_was_measured() -> None:
    length = PromptLength([0.1, 0.3, 0.6])
    for tokens, seconds in ((32, 0.05), (64, 0.1), (96, 0.15), (128, 0.3), (192, 0.6), (384, 1.2)):
        assert length.seconds_of(tokens) == pytest.approx(seconds)
    assert PromptLength([]).seconds_of(100) == 0


def test_the_prompt_of_a_long_file_has_the_length_that_was_set(
    service: EngineService, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "".join(f"value_{number} = compute({number})\n" for number in range(4000))
    middle = len(text) // 2
    length = measured(1000, most=1152)
    monkeypatch.setattr(service.model, "prompt_length", length)
    for asked in range(FEWEST_TOKENS, 1152 + STEP, STEP):
        seconds = asked / 1000 + 0.001
        job = CompletionJob("", "a.py", text[:middle], text[middle:], prompt_seconds=seconds)
        assert completion_budget(service.engine, job, length).prompt == asked
        # Its start moves in steps, so that the KV cache stays while the user types.
        assert asked / 2 < len(service.runner.completion_prompt(job).tokens) <= asked


def test_other_files_have_a_quarter_of_a_short_prompt(service: EngineService) -> None:
    job = CompletionJob("", "a.py", "x", "", context_tokens=900, prompt_seconds=0.1)
    budget = completion_budget(service.engine, job, measured(1000))
    assert budget == (FEWEST_TOKENS, FEWEST_TOKENS // 4)


def test_the_service_says_how_long_its_prompts_are(
    service: EngineService, monkeypatch: pytest.MonkeyPatch
) -> None:
    length = prompt_length(service.engine)
    # Costs that are learnt may have changed since the model was loaded.
    assert len(service.status().prompt_length.seconds) == len(length.seconds)
    monkeypatch.setattr(service.model, "prompt_length", length)
    assert service.status().prompt_length == length
    assert length.tokens(60.0) >= 1152
