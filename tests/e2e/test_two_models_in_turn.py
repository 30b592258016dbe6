"""Two models of which the memory budget holds one: the idle one gives way to the one asked for."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "decoding"))

from gguf_models import random_module, save_gguf

from lsp_server.engine.key import EngineKey
from lsp_server.engine.memory import need_of
from lsp_server.shared.settings import read_settings

from .client import Driver, command, profile, status

READY_S = 300
"""The first load of such a file compiles its forward."""
FUNCTION = "def total(prices):\n    result = sum(prices)\n    return \n"
WHOLE = {"start": {"line": 0, "character": 0}, "end": {"line": 2, "character": 11}}

pytestmark = [pytest.mark.long, pytest.mark.timeout(3 * READY_S)]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two files of random weights."""
    folder = tmp_path_factory.mktemp("models")
    sizes = {"hidden_size": 256, "intermediate_size": 512, "head_dim": 64}
    made = [
        save_gguf(folder / f"{name}.gguf", random_module("qwen2", seed, **sizes), "Q8_0")
        for seed, name in enumerate(("suggests", "edits"))
    ]
    return made[0], made[1]


def test_the_idle_model_gives_way_and_comes_back(
    own_environment: dict[str, str], models: tuple[Path, Path], tmp_path: Path
) -> None:
    suggests, edits = models
    alone = {"model": {"path": str(suggests), "device": "cpu"}}
    need = need_of(EngineKey.of(read_settings(alone).settings, "completion").options).nbytes
    most = int(1.5 * need / 1e6)
    settings = {
        "completion": {"model": str(suggests)},
        "edit": {"model": str(edits)},
        "model": {"memoryMegabytes": most},
        "index": {"enabled": False},
    }
    driver = Driver(own_environment)
    try:
        driver.initialize(profile("vscode"), tmp_path, settings=settings)
        document = {"uri": (tmp_path / "priced.py").as_uri(), "version": 1}
        driver.open(document["uri"], FUNCTION)
        place = {"textDocument": document, "position": WHOLE["end"]}
        edit = {"textDocument": document, "range": WHOLE, "instruction": "add type hints"}

        assert driver.request("redraft/explain", place, READY_S)["tokens"]
        assert running(own_environment) == {"suggests"}

        assert driver.request("redraft/edit", edit, READY_S)["edit"]
        assert running(own_environment) == {"edits"}
        told = command(own_environment, "status").stdout
        assert f"idle unloaded to make room for {edits}; the next request loads it again" in told
        assert f" of {most} MB for models" in told

        assert driver.request("redraft/explain", place, READY_S)["tokens"]
        assert running(own_environment) == {"suggests"}
    finally:
        driver.kill()


def running(environment: dict[str, str]) -> set[str]:
    """Models that have a process, as ``redraft status`` tells."""
    engines = status(environment)["engines"]
    return {Path(one["model"].split(".gguf")[0]).name for one in engines if one["pid"]}
