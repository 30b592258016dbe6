"""A codec of whole words for tests of edit drafting, and edits to replay."""

from __future__ import annotations

import re

import numpy as np

from accel.drafting.base import DraftRequest
from tests.benchmarks.replay import replay

PIECE = re.compile(r"\n *| ?\w+| ?[^\w\s]|\s", re.ASCII)
END = 0


class WordCodec:
    """Words, line breaks with indentation and single marks as tokens, numbered as they appear."""

    def __init__(self, *texts: str) -> None:
        self.pieces = [""]
        self.ids: dict[str, int] = {}
        for text in texts:
            self.encode(text)

    @property
    def vocabulary_size(self) -> int:
        return len(self.pieces)

    def encode(self, text: str) -> np.ndarray:
        tokens = []
        for piece in PIECE.findall(text):
            if piece not in self.ids:
                self.ids[piece] = len(self.pieces)
                self.pieces.append(piece)
            tokens.append(self.ids[piece])
        return np.array(tokens, np.int32)

    def decode(self, tokens) -> str:
        return "".join(self.pieces[token] for token in tokens)

    def bytes_of(self, token: int) -> bytes:
        return self.pieces[token].encode()


def edit_request(codec: WordCodec, instruction: str, before: str) -> DraftRequest:
    """A prompt of instruction and original between marks."""
    original = codec.encode(before)
    prompt = [codec.encode("@" + instruction), codec.encode("@"), original, codec.encode("@")]
    return DraftRequest(np.concatenate(prompt), original=original)


def replay_edit(drafter, codec: WordCodec, instruction: str, before: str, after: str, nodes=128):
    """Statistics of one replayed edit."""
    reference = np.append(codec.encode(after), np.int32(END))
    return replay(drafter, edit_request(codec, instruction, before), reference, nodes)
