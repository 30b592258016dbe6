"""An installation without torch and transformers, which are an extra."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from python_environments import python_environment_without
from small_model import SMALL_MODEL

sys.path.insert(0, str(Path(__file__).parent.parent / "decoding"))

from gguf_models import random_module, save_gguf
from tiny_models import save

pytestmark = pytest.mark.slow

INSTALL = "pip install 'redraft[torch]'"
CODE = "def area(width, height):\n    return \n"
SIZES = {"hidden_size": 256, "intermediate_size": 512, "head_dim": 64}


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter that has everything else."""
    folder = tmp_path_factory.mktemp("without-torch")
    return python_environment_without(folder, "torch", "transformers")


def redraft(python: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run a command."""
    code = "import sys; from lsp_server.commands.cli.main import main; sys.exit(main(sys.argv[1:]))"
    return subprocess.run(
        [str(python), "-I", "-c", code, *map(str, arguments)],
        capture_output=True, text=True, timeout=300, check=False,
        env={**os.environ, "COLUMNS": "1000", "REDRAFT_LLAMA_LIB": ""},
    )  # fmt: skip


def completion(python: Path, model: Path, file: Path, *options: str) -> str:
    """The text of a completion at the end of ``return``."""
    told = redraft(
        python, "complete", file, "--line", 2, "--character", 12, "--model", model,
        "--threads", "1", "--backend", "own", "--json", *options,
    )  # fmt: skip
    assert told.returncode == 0, told.stderr
    return str(json.loads(told.stdout)["text"])


def test_neither_can_be_imported(python: Path) -> None:
    for name in ("torch", "transformers"):
        found = subprocess.run(
            [python, "-c", f"import {name}"], capture_output=True, text=True, check=False
        )
        assert f"No module named '{name}'" in found.stderr
    subprocess.run([python, "-c", "import numba, tokenizers, pygls, lsp_server"], check=True)


@pytest.mark.parametrize("kind", ["small folder", "qwen2 folder", "gguf"])
def test_the_text_is_that_of_an_installation_with_torch(
    kind: str, python: Path, tmp_path: Path
) -> None:
    file = tmp_path / "area.py"
    file.write_text(CODE, "utf-8")
    if kind == "gguf":
        model = save_gguf(tmp_path / "m.gguf", random_module("qwen2", **SIZES), "Q8_0")
    else:
        model = SMALL_MODEL if kind.startswith("small") else save(tmp_path / "m", "qwen2", **SIZES)
    found = completion(python, model, file)
    assert found
    assert found == completion(Path(sys.executable), model, file)


def refusal(python: Path, *arguments: object) -> str:
    """The line that a command ends with."""
    told = redraft(python, *arguments)
    assert told.returncode == 1, told.stdout
    (line,) = told.stderr.strip().splitlines()
    return line


@pytest.mark.parametrize("kind", ["gpt2", "mistral-sliding", "no tokenizer.json"])
def test_another_model_says_what_to_install(kind: str, python: Path, tmp_path: Path) -> None:
    file, folder = tmp_path / "area.py", tmp_path / "model"
    file.write_text(CODE, "utf-8")
    if kind == "no tokenizer.json":
        model = save(folder, "qwen2", **SIZES)
        (folder / "tokenizer.json").rename(folder / "tokenizer.model")
    else:
        model = save(folder, kind)
    at = file, "--line", 2, "--character", 12, "--model", model, "--backend", "own"
    line = refusal(python, "complete", *at)
    assert str(model) in line
    assert line.endswith(INSTALL)


def test_what_else_needs_torch_says_so(python: Path, tmp_path: Path) -> None:
    file = tmp_path / "area.py"
    file.write_text(CODE, "utf-8")
    at = file, "--line", 2, "--character", 12, "--model", SMALL_MODEL, "--device", "cuda"
    assert refusal(python, "complete", *at).endswith(INSTALL)


def test_the_doctor_finds_nothing_wrong(python: Path) -> None:
    told = redraft(python, "doctor", "--model", SMALL_MODEL)
    assert told.returncode == 0, told.stdout
    (line,) = [line for line in told.stdout.splitlines() if " torch: " in line]
    assert "ok" in line
    assert INSTALL in line
