"""What retrieval and mask rows are asked when their pooling is fitted."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

import torch

from accel.loading import load_module
from accel.sources.token_shapes import TokenShapes
from accel.training.frozen_base import FrozenBase
from accel.training.mask_rows import fresh_parameters, group_states, sampled_states
from accel.training.pooling import nodes_of

sys.path.append(str(Path(__file__).parents[1] / "decoding"))
from tiny_models import save

MASKS, PERIOD, PROMPT, LENGTH, STEP = 3, 9, 40, 64, 4


def test_nodes_stand_on_the_true_path(tmp_path: Path) -> None:
    base = FrozenBase(
        load_module(save(tmp_path, "llama"), torch.float32, torch.device("cpu"), "eager")
    )
    random = torch.Generator().manual_seed(1)
    parameters = {
        name: value + 0.3 * torch.randn(value.shape, generator=random)
        for name, value in fresh_parameters(base, MASKS, 4, 0).items()
    }
    tokens = torch.stack([torch.arange(LENGTH) % PERIOD + 20, torch.arange(LENGTH) % PERIOD + 60])
    text = dataclasses.replace(base.read(tokens, 0), prompt=PROMPT)
    nodes = nodes_of(base, parameters, text, TokenShapes.unknown(), STEP)

    anchors = torch.arange(PROMPT - 1, LENGTH - 1 - MASKS, STEP).expand(2, -1)
    places = anchors[..., None] + 1 + torch.arange(MASKS)
    previous = tokens.gather(1, places.flatten(1)).view(places.shape)
    truth = tokens.gather(1, places.flatten(1) + 1).view(places.shape)
    states = group_states(base, parameters, text, anchors)
    logits = sampled_states(base, parameters, states, previous) @ base.head.T
    wanted = logits.softmax(-1).gather(-1, truth[..., None]).flatten()
    right = nodes.right[:, None]
    torch.testing.assert_close(nodes.chances.gather(1, right)[:, 0], wanted, rtol=1e-3, atol=1e-5)
    # The text repeats itself, so retrieval knows what follows.
    known = nodes.known.gather(1, right)[:, 0]
    assert (known == nodes.known.max(1).values).all()
    assert float(known.min()) > 0.2
    assert nodes.features[:, :MASKS].sum(0).tolist() == [anchors.numel()] * MASKS
