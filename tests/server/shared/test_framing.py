"""Framing: hostile headers cost one error each and never the connection."""

from __future__ import annotations

import json
import random

import pytest
from seeds import Amount

from lsp_server.shared.errors import ProtocolError
from lsp_server.shared.processes.framing import MAX_BODY_BYTES, MessageSplitter, lsp_message

GOOD = lsp_message(b'{"jsonrpc":"2.0","id":1,"method":"x"}')


def items(data: bytes, step: int = 1 << 30) -> list[bytes | ProtocolError]:
    splitter = MessageSplitter()
    found: list[bytes | ProtocolError] = []
    for start in range(0, len(data), step):
        found += splitter.feed(data[start : start + step])
    return found


def bodies(data: bytes, step: int = 1 << 30) -> list[bytes]:
    return [item for item in items(data, step) if isinstance(item, bytes)]


@pytest.mark.parametrize("step", [1, 2, 7, 1000])
def test_messages_come_out_however_they_are_cut(step: int) -> None:
    texts = [json.dumps({"text": "é𝄞" * n}).encode() for n in range(5)]
    assert bodies(b"".join(map(lsp_message, texts)), step) == texts


HOSTILE = {
    "a trillion bytes": b"Content-Length: 1000000000000\r\n\r\n",
    "5,000 digits": b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n",
    "negative": b"Content-Length: -5\r\n\r\n",
    "not a number": b"Content-Length: many\r\n\r\n",
    "hexadecimal": b"Content-Length: 0x10\r\n\r\n",
    "empty": b"Content-Length:\r\n\r\n",
    "two different lengths": b"Content-Length: 3\r\nContent-Length: 99999999999\r\n\r\n",
    "no length": b"Content-Type: text/plain\r\n\r\n",
    "a line of its own": b"hello\r\n\r\n",
    "endless header": b"X" * 20_000,
    "zero": b"Content-Length: 0\r\n\r\n",
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("step", [1, 1 << 30])
def test_a_hostile_header_costs_one_error_and_the_next_message_is_read(
    name: str, step: int
) -> None:
    found = items(HOSTILE[name] + GOOD, step)
    assert [type(item) for item in found] == [ProtocolError, bytes]
    assert found[1] == GOOD[GOOD.index(b"{") :]


@pytest.mark.parametrize(
    "header",
    [
        b"content-length: %d\r\n\r\n",
        b"CONTENT-LENGTH:%d\r\n\r\n",
        b"Content-Type: application/vscode-jsonrpc; charset=utf-8\r\nContent-Length: %d\r\n\r\n",
        b"Content-Length: %d\r\nContent-Type: x\r\n\r\n",
        b"Content-Length: %d\r\nContent-Length: %d\r\n\r\n",
        b"Content-Length: %d\n\n",
        b"Content-Length:   %d  \r\n\r\n",
    ],
)
def test_unusual_but_readable_headers_are_read(header: bytes) -> None:
    body = b'{"a":1}'
    count = header.count(b"%d")
    assert items(header % ((len(body),) * count) + body + GOOD) == [body, GOOD[GOOD.index(b"{") :]]


def test_a_large_message_is_skipped_without_being_held() -> None:
    splitter = MessageSplitter()
    length = MAX_BODY_BYTES + 1000
    found = list(splitter.feed(b"Content-Length: %d\r\n\r\n" % length))
    chunk = b"x" * (1 << 20)
    for _ in range(length // len(chunk)):
        found += splitter.feed(chunk)
        assert len(splitter._buffer) <= len(chunk)
    found += splitter.feed(b"x" * (length % len(chunk)) + GOOD)
    assert [type(item) for item in found] == [ProtocolError, bytes]


def mutated(rng: random.Random) -> bytes:
    data = bytearray(b"".join([GOOD] * rng.randrange(1, 4)))
    for _ in range(rng.randrange(1, 6)):
        place = rng.randrange(len(data))
        kind = rng.randrange(4)
        if kind == 0:
            data[place] = rng.randrange(256)
        elif kind == 1:
            del data[place : place + rng.randrange(1, 20)]
        elif kind == 2:
            data[place:place] = bytes(rng.randrange(256) for _ in range(rng.randrange(1, 10)))
        else:
            data[place:place] = data[: rng.randrange(len(data))]
        if not data:
            data += b"x"
    return bytes(data)


def test_mutated_streams_never_crash_or_hang(amount: Amount) -> None:
    rounds = amount(800, 200_000)
    seed = random.randrange(1 << 30)
    rng = random.Random(seed)
    for number in range(rounds):
        splitter = MessageSplitter()
        data, place, count = mutated(rng), 0, 0
        while place < len(data):
            step = rng.randrange(1, 40)
            count += sum(1 for _ in splitter.feed(data[place : place + step]))
            place += step
        assert count <= len(data), f"seed {seed}, round {number}"
        # A cut body may swallow what follows it; after enough text of its own length, good
        # messages are read again.
        answers = b"".join([GOOD] * 400)
        read = [item for item in splitter.feed(answers) if isinstance(item, bytes)]
        if len(data) < 10_000 and splitter._to_skip == 0 and (splitter._body_length or 0) < 5000:
            assert GOOD[GOOD.index(b"{") :] in read, f"seed {seed}, round {number}: {data!r}"
