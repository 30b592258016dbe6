"""A speculator: a small network that guesses tokens from the state that the model already has.

``speculator.safetensors`` beside a model's weights holds

    state, state_bias             [width, 2 * model], [width]   what the model's state adds, that of
                                                   the last layer and that of a middle one
    token, candidate              [width, model]   what a token's embedding adds, as the one that
                                                   was chosen, and as what followed the text's
                                                   longest match
    length                        [lengths, width]  what the match's length adds
    gate_up, down                 [2 * hidden, width], [width, hidden]   a gated linear unit
    onward, onward_bias           [width, width], [width]   from one guess to the next
    out, rest, bias               [model, width], [width], [vocabulary]   of the tokens' logits;
                                                   all have ``rest`` less, and are logarithms of
                                                   chances before the candidate has more
    copy, copy_bias               [width], [lengths]   what the candidate's score gets beside that
    frequent                      int32 [n]   tokens that are guessed in every text

and, as metadata, the sha256 of the base that it was trained on; it is worth nothing on another. An
MLP speculator (Wertheimer et al., 2024) that is also told what retrieval would draft.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from accel.errors import BrokenModel
from accel.int8 import Int8, encoded
from accel.mask_tokens import SPECULATOR_FILE, read_weights
from accel.matmul import BLOCK, rounded_bits
from accel.memory import copied

FILE = SPECULATOR_FILE

LENGTHS = 13
"""Lengths of matches that are told apart, from 0 on; the last stands for all longer ones."""

Floats = NDArray[np.float32]
Halves = NDArray[np.int16]


class Speculator(NamedTuple):
    """The network as compiled code wants it. Matrices are in int8, which guesses as well as bf16
    does, tables by token the bits of bf16.

    by_token, by_candidate: int16 [vocabulary, width]; by_length: float32 [lengths, width]; biases:
    float32 [2, width], of state and onward; words: int32 [vocabulary, width / 4], a token's
    column of the head, and word_scales: float32 [vocabulary], see ``int8.encoded``; bias: float32
    [vocabulary]; copy: float32 [width]; copy_bias: float32 [lengths]; frequent: int32 [n].
    """

    state: Int8
    gate_up: Int8
    down: Int8
    onward: Int8
    by_token: Halves
    by_candidate: Halves
    by_length: Floats
    biases: Floats
    words: NDArray[np.int32]
    word_scales: Floats
    bias: Floats
    copy: Floats
    copy_bias: Floats
    frequent: NDArray[np.int32]

    @classmethod
    def of(cls, weights: dict[str, Tensor], embeddings: Tensor) -> Speculator:
        """The network of ``weights`` by name, on a base with ``embeddings`` [vocabulary, model].

        Raises BrokenModel where weights are missing or do not fit the base.
        """
        base = embeddings.detach().float().cpu()
        try:
            wide = {name: weight.float() for name, weight in weights.items()}
            biases = [wide[f"{name}_bias"] for name in ("state", "onward")]
            words, word_scales = encoded((base @ wide["out"] - wide["rest"]).numpy())
            speculator = cls(
                state=Int8.of(wide["state"].numpy()),
                gate_up=Int8.of(wide["gate_up"].numpy()),
                down=Int8.of(wide["down"].numpy()),
                onward=Int8.of(wide["onward"].numpy()),
                by_token=copied(rounded_bits((base @ wide["token"].T).numpy())),
                by_candidate=copied(rounded_bits((base @ wide["candidate"].T).numpy())),
                by_length=copied(wide["length"].numpy()),
                biases=copied(torch.stack(biases).numpy()),
                words=copied(words),
                word_scales=word_scales,
                bias=wide["bias"].numpy().copy(),
                copy=copied(wide["copy"].numpy()),
                copy_bias=wide["copy_bias"].numpy().copy(),
                frequent=weights["frequent"].numpy().astype(np.int32),
            )
        except KeyError as error:
            raise BrokenModel(f"{FILE} lacks {error}; train it again") from error
        except RuntimeError as error:
            raise BrokenModel(
                f"{FILE} is of another width than its base; train it again"
            ) from error
        sizes = speculator.width, speculator.hidden
        fits = speculator.state_width == 2 * base.shape[1] and len(speculator.bias) == len(base)
        if any(size % BLOCK for size in sizes) or not fits:
            raise BrokenModel(f"{FILE} has sizes that do not fit together; train it again")
        return speculator

    @property
    def width(self) -> int:
        """Numbers of a state of its own."""
        return self.by_length.shape[1]

    @property
    def hidden(self) -> int:
        """Numbers inside its gated linear unit."""
        return self.down.depth

    @property
    def state_width(self) -> int:
        """Numbers of a state of the model, see ``Model.state_of``."""
        return self.state.depth


def read_speculator(folder: Path, embeddings: Tensor, base_sha256: str) -> Speculator:
    """The speculator beside a model's weights.

    Raises BrokenModel for a damaged file, UnsupportedModel for one made for another base.
    """
    return Speculator.of(read_weights(folder / FILE, base_sha256), embeddings)
