"""Event streams of other servers, by the rules of browsers, in whatever pieces they come."""

from __future__ import annotations

import random

import pytest
from text_cases import data_cases

from lsp_server.editor.remote.answer_events import ErrorEvent, TextEvent, read_event
from lsp_server.editor.remote.event_stream import MOST_CHARACTERS, EventStream, EventTooLong


@data_cases()
def test_events_are_read_in_any_pieces(text: str, events: list[list[str]]) -> None:
    seed = random.SystemRandom().randrange(1 << 40)
    rng = random.Random(seed)
    received = text.encode()
    for _ in range(50):
        cuts = sorted(rng.randrange(len(received) + 1) for _ in range(rng.randrange(6)))
        stream, found = EventStream(), []
        for start, end in zip([0, *cuts], [*cuts, len(received)], strict=True):
            found += stream.read(received[start:end])
        found += stream.end()
        assert [[one.event, one.data] for one in found] == events, f"seed {seed}"


def test_an_event_is_told_with_the_byte_that_ends_it() -> None:
    for end in ("\n\n", "\r\r", "\r\n\r\n"):
        stream = EventStream()
        assert len(list(stream.read(f"data: a{end}".encode()))) == 1


def test_a_document_in_place_of_a_stream_is_one_event() -> None:
    for text in ('{"a": 1}', '\ufeff \n{"a":\n\n 1}', "[1]"):
        stream, found = EventStream(), []
        for byte in text.encode():
            found += stream.read(bytes([byte]))
        assert not found
        (event,) = stream.end()
        assert event.data.strip() == text.removeprefix("\ufeff").strip()


def test_an_event_without_end_is_given_up() -> None:
    stream = EventStream()
    list(stream.read(b"data: "))
    received = b"x" * MOST_CHARACTERS
    with pytest.raises(EventTooLong):
        list(stream.read(received))


def choice(**more: object) -> dict[str, object]:
    return {"choices": [{"index": 0, "finish_reason": None, **more}]}


@pytest.mark.parametrize(
    ("data", "event"),
    [
        (choice(text="a"), TextEvent("a")),
        (choice(delta={"content": "a"}), TextEvent("a")),
        (choice(delta={"content": None}), TextEvent("")),
        (choice(delta={}), TextEvent("")),
        (choice(delta={"content": [{"type": "text", "text": "a"}, "b"]}), TextEvent("ab")),
        (
            choice(delta={"content": [{"type": "thinking", "thinking": [{"text": "x"}]}]}),
            TextEvent(""),
        ),
        (choice(delta={"reasoning_content": "x"}), TextEvent("")),
        (choice(delta={"reasoning": "x", "content": ""}), TextEvent("")),
        (choice(message={"content": "a"}, finish_reason="stop"), TextEvent("a", "end")),
        ({"choices": [{"message": {"content": "a"}}]}, TextEvent("a", "end")),
        (choice(message={"content": "a"}), TextEvent("a")),
        (choice(delta={}, finish_reason="eos_token"), TextEvent("", "end")),
        (choice(delta={}, finish_reason="end_turn"), TextEvent("", "end")),
        (choice(delta={}, finish_reason="length"), TextEvent("", "length")),
        (choice(delta={}, finish_reason="MAX_TOKENS"), TextEvent("", "length")),
        (choice(delta={}, finish_reason="model_length"), TextEvent("", "length")),
        (choice(delta={}, finish_reason="content_filter"), TextEvent("", "content_filter")),
        (choice(delta={}, finish_reason="SAFETY"), TextEvent("", "SAFETY")),
        (choice(delta={}, finish_reason="tool_calls"), TextEvent("", "tool_calls")),
        (choice(delta={}, finish_reason="abort"), TextEvent("", "abort")),
        (choice(delta={"refusal": "No."}, finish_reason="stop"), TextEvent("", "refusal")),
        (choice(delta={}, error={"message": "lost"}), TextEvent("", "lost")),
        ({"choices": [], "usage": {}}, TextEvent("")),
        ({"type": "ping"}, TextEvent("")),
        ({"content": "a", "stop": False}, TextEvent("a")),
        ({"content": "", "stop": True, "stop_type": "limit"}, TextEvent("", "length")),
        ({"content": "", "stop": True, "stopped_limit": True}, TextEvent("", "length")),
        ({"content": "", "stop": True, "stop_type": "eos"}, TextEvent("", "end")),
        ({"error": {"message": "x"}}, ErrorEvent({"error": {"message": "x"}})),
        ({"error": "x"}, ErrorEvent({"error": "x"})),
    ],
)
def test_what_events_say(data: dict[str, object], event: object) -> None:
    assert read_event(data) == event
