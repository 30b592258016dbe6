"""Where LM Studio keeps models: in a home that may be moved, and in a folder of its settings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lsp_server.models.stores import candidates


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("CACHE", "CONFIG", "DATA", "STATE"):
        monkeypatch.delenv(f"XDG_{name}_HOME", raising=False)
    for name in ("REDRAFT_MODELS", "LLAMA_CACHE", "OLLAMA_MODELS", "HF_HOME", "HF_HUB_CACHE"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def placed(folder: Path) -> None:
    """A file as LM Studio keeps it."""
    file = folder / "owner" / "repo" / "small.gguf"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"GGUF")


def settings(home: Path, text: str) -> None:
    home.mkdir(parents=True, exist_ok=True)
    (home / "settings.json").write_text(text, "utf-8")


def found() -> list[str]:
    return [one.name for one in candidates() if one.source == "LM Studio"]


@pytest.mark.parametrize("inside", [".lmstudio", ".cache/lm-studio"])
def test_in_its_usual_homes(home: Path, inside: str) -> None:
    placed(home / inside / "models")
    assert found() == ["small"]


@pytest.mark.parametrize("ending", ["", "\n", "\r\n", "  "])
@pytest.mark.parametrize("usual", [False, True])
def test_in_a_home_that_was_moved(home: Path, ending: str, usual: bool) -> None:
    moved = home / "a disk" / "LM Studio"
    (home / ".lmstudio-home-pointer").write_text(f"{moved}{ending}")
    placed(moved / "models")
    if usual:
        (home / ".lmstudio").mkdir()
    assert found() == ["small"]


@pytest.mark.parametrize("inside", [".lmstudio", ".cache/lm-studio", "moved"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_in_the_folder_of_its_settings(home: Path, inside: str, mark: str) -> None:
    (home / ".lmstudio-home-pointer").write_text(str(home / "moved"))
    placed(home / "large disk")
    chosen = json.dumps({"developer": {}, "downloadsFolder": str(home / "large disk")})
    settings(home / inside, mark + chosen)
    assert found() == ["small"]


def test_one_folder_that_is_named_twice_is_read_once(home: Path) -> None:
    placed(home / ".lmstudio" / "models")
    (home / ".lmstudio-home-pointer").write_text(str(home / ".lmstudio"))
    chosen = json.dumps({"downloadsFolder": str(home / ".lmstudio" / "models")})
    settings(home / ".lmstudio", chosen)
    assert found() == ["small"]


@pytest.mark.parametrize("pointer", ["", "moved", "/nowhere/at/all", "\0", "two\nlines"])
@pytest.mark.parametrize(
    "text", ["", "{", "[]", "7", "{}", '{"downloadsFolder": 7}', '{"downloadsFolder": "models"}']
)
def test_what_cannot_be_read_is_passed_over(home: Path, pointer: str, text: str) -> None:
    (home / ".lmstudio-home-pointer").write_text(pointer)
    settings(home / ".lmstudio", text)
    placed(home / ".lmstudio" / "models")
    assert found() == ["small"]
