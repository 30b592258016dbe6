"""Speculators with random weights."""

from __future__ import annotations

import torch

from accel.speculator import Speculator
from accel.training.speculator import Network

MODEL, WIDTH, HIDDEN, VOCABULARY = 64, 32, 96, 120
STATE = 2 * MODEL
FREQUENT = torch.tensor([0, 3, 7])


def network_of(seed: int) -> Network:
    """Random weights as they are stored, in bf16."""
    torch.manual_seed(seed)
    network = Network(WIDTH, HIDDEN, torch.randn(VOCABULARY, MODEL).bfloat16().float())
    for parameter in network.parameters():
        parameter.data = torch.randn_like(parameter).mul(0.25).bfloat16().float()
    return network


def weights_of(network: Network) -> dict[str, torch.Tensor]:
    weights = network.weights(FREQUENT)
    return {name: weight.detach() for name, weight in weights.items()}


def speculator_of(network: Network) -> Speculator:
    return Speculator.of(weights_of(network), network.embeddings)
