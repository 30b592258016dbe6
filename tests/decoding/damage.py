"""Ways to damage the bytes of a GGUF file, by chance and by malice."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

from accel.errors import AccelError

HOSTILE = [0, 1, 2, 255, 1 << 16, 1 << 31, (1 << 32) - 1, 1 << 62, (1 << 63) - 1, (1 << 64) - 1]


def flip(data: bytearray, header: int, draw: random.Random) -> bytearray:
    for _ in range(draw.randint(1, 4)):
        data[draw.randrange(header)] ^= 1 << draw.randrange(8)
    return data


def cut(data: bytearray, header: int, draw: random.Random) -> bytearray:
    return data[: draw.randrange(len(data) if draw.random() < 0.5 else header)]


def drop(data: bytearray, header: int, draw: random.Random) -> bytearray:
    start = draw.randrange(header)
    return data[:start] + data[start + draw.randint(1, 40) :]


def repeat(data: bytearray, header: int, draw: random.Random) -> bytearray:
    start = draw.randrange(header)
    return data[:start] + data[start : start + draw.randint(1, 80)] + data[start:]


def exaggerate(data: bytearray, header: int, draw: random.Random) -> bytearray:
    width = draw.choice([4, 8])
    number = draw.choice(HOSTILE) & ((1 << 8 * width) - 1)
    start = draw.randrange(header - width)
    data[start : start + width] = number.to_bytes(width, "little")
    return data


MUTATIONS: list[Callable[[bytearray, int, random.Random], bytearray]] = [
    flip,
    cut,
    drop,
    repeat,
    exaggerate,
]


def refuse_mutations(path: Path, header: int, count: int, read: Callable[[Path], None]) -> int:
    """Read mutations of a file whose header has ``header`` bytes: each is read, or refused in one
    line that names a remedy. Returns the number refused."""
    seed = random.randrange(1 << 32)
    print("seed", seed)
    draw = random.Random(seed)
    whole = path.read_bytes()
    messages: list[str] = []
    for _ in range(count):
        path.write_bytes(draw.choice(MUTATIONS)(bytearray(whole), header, draw))
        try:
            read(path)
        except AccelError as error:
            messages.append(str(error))
    assert [message for message in messages if "\n" in message or ";" not in message] == []
    return len(messages)
