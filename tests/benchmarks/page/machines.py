"""The table of the project's page: which model suits which machine, computed as ``redraft setup``
does it there, from the sizes of the models and what the machine copies in a second.

python -m tests.benchmarks machines
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from unittest.mock import patch

from accel.files import memory_fit
from lsp_server.models import speed
from lsp_server.models.better_editor import smallest_good
from lsp_server.models.card import ModelCard
from lsp_server.models.manifest import read_manifest
from lsp_server.models.recommendation import recommended

HEAD = "| machine | suggestions, tokens/s | edits by instruction, tokens/s |\n| --- | --- | --- |"


@dataclass(frozen=True, slots=True)
class Machine:
    """name: in words; free_bytes: of memory; bytes_per_s: what a core reads and writes."""

    name: str
    free_bytes: int
    bytes_per_s: float


MACHINES = (
    Machine("2 cores, 4 GB (2 free), 10 GB/s", 2_000_000_000, 10e9),
    Machine("4 cores, 8 GB (5 free), 20 GB/s", 5_000_000_000, 20e9),
    Machine("8 cores, 16 GB (11 free), 40 GB/s", 11_000_000_000, 40e9),
    Machine("8 cores, 32 GB (25 free), 80 GB/s", 25_000_000_000, 80e9),
    Machine("12 cores, 64 GB (50 free), 200 GB/s", 50_000_000_000, 200e9),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """None."""


def run(_args: argparse.Namespace) -> int:
    """Print the table."""
    print(table())
    return 0


def table() -> str:
    """A row for each machine."""
    return "\n".join([HEAD, *map(_row, MACHINES)])


def _row(machine: Machine) -> str:
    with (
        patch.object(memory_fit, "free_bytes", lambda: machine.free_bytes),
        patch.object(speed, "bandwidth", lambda: machine.bytes_per_s),
    ):
        models = [speed.rated(model) for model in read_manifest() if not model.limits_use]
        name = recommended([], models).name
        best = next(model for model in models if model.name == name)
        edits = smallest_good(models, 0.0)
    shown = _cell(best), "the default's few kinds" if edits is None else _cell(edits)
    return f"| {machine.name} | {' | '.join(shown)} |"


def _cell(model: ModelCard) -> str:
    assert model.speed is not None
    size = f"{model.nbytes / 1e9:.1f} GB"
    return f"`{model.name}` ({size}): {model.speed.tokens_per_s:.0f}"
