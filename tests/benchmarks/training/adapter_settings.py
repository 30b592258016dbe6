"""The settings of ``train adapter``: one file of JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from tests.benchmarks.training.errors import TrainingError
from tests.benchmarks.training.samples.sample_maker import Shares


@dataclass(frozen=True)
class AdapterSettings:
    """What is trained, on what and for how long. Paths are relative to the file of settings."""

    base: str
    """A GGUF file or a folder of safetensors, built like Llama."""
    code: list[str]
    """Folders of code; of git repositories the history, too."""
    out: str
    """The adapter's file, ``….safetensors``."""
    fim_tokens: list[str] = field(default_factory=list)
    """Names of the base's tokens that become <fim_prefix>, <fim_suffix> and <fim_middle>; empty
    where it has tokens for holes, or shall learn none."""
    minutes: float = 8.0
    """How long training goes on."""
    steps: int = 0
    """So many steps in place of a time."""
    rank: int = 64
    learning_rate: float = 2e-3
    warm_up_steps: int = 60
    constant_share: float = 0.4
    """How much of the run passes before the learning rate falls, to nothing at the end."""
    batches: list[list[int]] = field(default_factory=lambda: [[42, 384], [21, 768]])
    """Rows and tokens of the batches; one of them is drawn each time."""
    accumulate: int = 4
    """Batches of one step."""
    shares: Shares = field(default_factory=Shares)
    """How often holes, edits and next edits are drawn."""
    commits: int = 1500
    """Changes of files, at most, from one history."""
    held_out_share: float = 0.02
    """Files and commits on which the loss is measured only."""
    device: str = "auto"
    workers: int = 2
    """Processes that make samples; 0 makes them between the steps."""
    seed: int = 0


EXAMPLE = AdapterSettings(
    base="SmolLM2-135M-Instruct.Q4_1.gguf",
    code=["repositories/one", "repositories/two"],
    out="adapter.safetensors",
    fim_tokens=["<issue_start>", "<issue_comment>", "<issue_closed>"],
)
"""How the default model's adapter was trained, but for its repositories."""


def example() -> str:
    """Settings to begin with."""
    return json.dumps(asdict(EXAMPLE), indent=1) + "\n"


def read_settings(file: Path) -> AdapterSettings:
    """Raises TrainingError for what cannot be read, is unknown, missing or of another kind."""
    try:
        given = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise TrainingError(
            f"{file} cannot be read ({error}); `--example` prints settings"
        ) from error
    if not isinstance(given, dict):
        raise TrainingError(f"{file} holds no object; `--example` prints one")
    given = dict(given)
    shares = given.pop("shares", {})
    _check(given, asdict(EXAMPLE), file)
    _check(shares, asdict(EXAMPLE.shares), file)
    missing = [one for one in ("base", "code", "out") if one not in given]
    if missing:
        raise TrainingError(f"{file} lacks {missing[0]}; `--example` prints settings")
    settings = AdapterSettings(**given, shares=Shares(**shares))
    _check_values(settings, file)
    return settings


def _check(given: Any, known: dict[str, Any], file: Path) -> None:
    if not isinstance(given, dict):
        raise TrainingError(f"{file}: shares are given by kind, {', '.join(known)}")
    for name, value in given.items():
        if name not in known:
            raise TrainingError(f"{file}: {name} is no setting; known are {', '.join(known)}")
        wanted = type(known[name])
        fits = isinstance(value, wanted) or (wanted is float and isinstance(value, int))
        if not fits or isinstance(value, bool):
            raise TrainingError(f"{file}: {name} is a {wanted.__name__}, not {value!r}")


def _check_values(settings: AdapterSettings, file: Path) -> None:
    if len(settings.fim_tokens) not in (0, 3):
        raise TrainingError(f"{file}: fim_tokens names three tokens, or none")
    if not settings.batches or not all(len(one) == 2 and min(one) > 0 for one in settings.batches):
        raise TrainingError(f"{file}: batches are pairs of rows and tokens")
    if not settings.code:
        raise TrainingError(f"{file}: code names no folder")
    positive = ("rank", "learning_rate", "accumulate")
    for each in fields(settings):
        if each.name in positive and getattr(settings, each.name) <= 0:
            raise TrainingError(f"{file}: {each.name} is more than nothing")
    if settings.steps <= 0 and settings.minutes <= 0:
        raise TrainingError(f"{file}: give minutes or steps")
