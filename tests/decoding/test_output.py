"""The output of a generation, the same at any time as at once."""

from __future__ import annotations

import json

import numpy as np
import pytest
from seeds import for_each_seed

from accel.decoding.output import OutputBuffer
from accel.decoding.request import GenerationRequest
from accel.text.tokenizer import Tokenizer

END = 256
PROMPT = np.array([1], np.int32)


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    """A token for every byte, and one behind them that ends a text."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    marks = {byte: chr(byte) for byte in printable}
    others = [byte for byte in range(256) if byte not in marks]
    marks |= {byte: chr(256 + order) for order, byte in enumerate(others)}
    model = {"type": "BPE", "vocab": {marks[byte]: byte for byte in range(256)}, "merges": []}
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False}
    end = {"id": END, "content": "<end>", "special": True, "single_word": False, "lstrip": False}
    return Tokenizer(
        json.dumps(
            {
                "version": "1.0",
                "model": model,
                "pre_tokenizer": level,
                "decoder": level,
                "added_tokens": [{**end, "rstrip": False, "normalized": False}],
            }
        )
    )


def written(
    tokenizer: Tokenizer, request: GenerationRequest, steps: list[list[int]]
) -> OutputBuffer:
    transcript = OutputBuffer(request, tokenizer, frozenset([END]))
    for step in steps:
        if not transcript.is_finished:
            transcript.take(step)
    return transcript


def cut_up(data: bytes, random: np.random.Generator) -> list[list[int]]:
    positions = sorted(random.integers(0, len(data) + 1, 5).tolist())
    return [list(data[a:b]) for a, b in zip([0, *positions], [*positions, len(data)], strict=True)]


@for_each_seed(range(20))
def test_text_asked_for_after_any_step_is_that_of_all_bytes(
    seed: int, tokenizer: Tokenizer
) -> None:
    """Steps end within characters; what is typed already is left out."""
    random = np.random.default_rng(seed)
    data = "déjà = 'ü→𝒳'\n".encode() * 3
    typed = data[: random.choice([0, 1, 3, 4])]
    request = GenerationRequest(PROMPT, required_prefix=typed)
    transcript = OutputBuffer(request, tokenizer, frozenset([END]))
    done = b""
    for step in cut_up(data, random):
        assert transcript.take(step) == len(step)
        done += bytes(step)
        if random.integers(2):
            whole = done[len(typed) :].decode(errors="ignore")
            assert transcript.text == whole, f"seed {seed}"
    assert transcript.text == data[len(typed) :].decode(errors="replace"), f"seed {seed}"
    assert (transcript.rest, transcript.is_finished) == (b"", False)


@for_each_seed(range(20))
def test_tokens_taken_at_once_end_as_those_taken_one_by_one(
    seed: int, tokenizer: Tokenizer
) -> None:
    """A stop rule that never stops has every token looked at."""
    random = np.random.default_rng(seed)
    steps = [random.integers(60, END + 1, 60).tolist() for _ in range(6)]
    limit = int(random.integers(1, 120))
    actual = []
    for rule in (None, lambda _text: None):
        request = GenerationRequest(PROMPT, max_tokens=limit, stop_rule=rule)
        transcript = written(tokenizer, request, steps)
        actual.append((transcript.tokens, transcript.text, transcript.stopped_by))
    assert actual[0] == actual[1], f"seed {seed}"
    assert actual[0][2] in ("end", "length")


def test_the_stop_rule_cuts_and_the_first_reason_counts(tokenizer: Tokenizer) -> None:
    request = GenerationRequest(
        PROMPT, stop_rule=lambda text: text.find(";") if ";" in text else None
    )
    transcript = written(tokenizer, request, [list(b"a = 1"), list(b"; b = 2")])
    assert (transcript.text, transcript.stopped_by) == ("a = 1", "stop")
    assert bytes(transcript.tokens) == b"a = 1;"
    transcript.finish("length")
    assert transcript.stopped_by == "stop"
