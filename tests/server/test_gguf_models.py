"""GGUF files as the server and the commands take them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "decoding"))

from gguf_models import random_module, save_gguf

from lsp_server.engine.model_paths import check_model, files_state, tokenizer_folder
from lsp_server.errors import ModelUnavailable
from repo_index.tokens import TextTokenizer


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return save_gguf(tmp_path / "m.gguf", random_module("qwen2"), "F16")


def test_the_index_has_the_tokens_of_the_file(model: Path) -> None:
    check_model(model)
    tokenizer = TextTokenizer.from_file(tokenizer_folder(str(model)))
    assert tokenizer.vocabulary_size == 300
    assert tokenizer.encode(["ab"])[0].tolist() == [97, 98]


def test_a_file_that_cannot_be_loaded_says_why_before_it_is(model: Path) -> None:
    state = files_state(model)
    model.write_bytes(model.read_bytes()[:3000])
    assert files_state(model) != state
    for refused in (check_model, tokenizer_folder):
        with pytest.raises(ModelUnavailable) as caught:
            refused(model)
        assert "is damaged" in caught.value.cause
        assert caught.value.remedy == "fetch the file again"


def test_a_folder_with_the_file_says_which_it_is(model: Path) -> None:
    with pytest.raises(ModelUnavailable, match=r"holds GGUF files; give the file itself.*m.gguf"):
        check_model(model.parent)


@pytest.mark.long
def test_a_completion_on_the_command_line(model: Path, tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text("def f(a):\n    b = \n    return b\n", encoding="utf-8")
    place = ["--line", "1", "--character", "8", "--model", str(model)]
    done = subprocess.run(
        [sys.executable, "-m", "lsp_server", "complete", str(file), *place],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "forwards" in done.stderr + done.stdout
