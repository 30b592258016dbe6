"""The choice among libraries of llama.cpp; one of another layout is refused."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path

import pytest
from gguf_models import random_module, save_gguf

from accel.errors import UnsupportedModel
from accel.files.model_options import ModelOptions
from accel.models.llama_cpp import library_files, process
from accel.models.llama_cpp.layouts import CONTEXT_LAYOUTS, MODEL_LAYOUTS, Layout, fitting
from accel.models.llama_cpp.library_files import VARIABLE, find_library
from accel.models.llama_cpp.model import LlamaCppModel
from accel.models.llama_cpp.process import examine
from lsp_server.commands.cli import doctor
from tests.llama_cpp_package import has_package


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (VARIABLE, "HOMEBREW_PREFIX", "CONDA_PREFIX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(library_files, "_BREW", ())


def in_folder(folder: Path) -> Path:
    folder.mkdir(parents=True)
    path = folder / library_files.library_names()[0]
    path.write_bytes(b"")
    return path


def test_a_library_is_found_by_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user's own comes first, then that of the package, of Homebrew, of conda."""
    monkeypatch.setattr(library_files, "PACKAGE", "no_such_package")
    assert find_library() is None
    conda = in_folder(tmp_path / "conda" / "lib")
    monkeypatch.setenv("CONDA_PREFIX", str(tmp_path / "conda"))
    actual = find_library()
    assert actual is not None
    assert (actual.path, actual.source) == (conda, "conda")
    brew = in_folder(tmp_path / "brew" / "lib")
    (tmp_path / "brew" / "Cellar").mkdir()
    monkeypatch.setenv("HOMEBREW_PREFIX", str(tmp_path / "brew"))
    actual = find_library()
    assert actual is not None
    assert (actual.path, actual.source) == (brew, "Homebrew")
    own = in_folder(tmp_path / "own")
    for given in (own, own.parent):
        monkeypatch.setenv(VARIABLE, str(given))
        actual = find_library()
        assert actual is not None
        assert (actual.path, actual.source) == (own, VARIABLE)


def test_a_path_without_a_library_is_said_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    with pytest.raises(UnsupportedModel, match=f"{VARIABLE} names .*, where no library is"):
        examine()
    finding = doctor._llama_cpp()
    assert VARIABLE in finding.found
    assert f"unset {VARIABLE}" in finding.remedy
    assert not finding.fatal


def test_a_file_that_is_no_library_is_said_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, str(in_folder(tmp_path / "own")))
    for use in (examine, lambda: LlamaCppModel(tmp_path / "m.gguf", ModelOptions(threads=1))):
        with pytest.raises(UnsupportedModel, match="cannot be loaded") as raised:
            use()
        assert "\n" not in str(raised.value)
        # The model is none the worse for it.
        assert f"unset {VARIABLE}" in raised.value.remedy


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, process.SPINS),
        ({"GOMP_SPINCOUNT": "7"}, "7"),
        ({"OMP_WAIT_POLICY": "active"}, "none"),
    ],
)
def test_threads_of_the_library_sleep_soon_unless_a_user_says_otherwise(
    given: dict[str, str], expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY"):
        monkeypatch.delenv(name, raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    told = "import os, sys; open(sys.argv[1], 'w').write(os.environ.get('GOMP_SPINCOUNT', 'none'))"
    command = sys.executable, "-c", told, str(tmp_path / "told")
    monkeypatch.setattr(process, "COMMAND", command)
    with pytest.raises(UnsupportedModel):
        examine()
    assert (tmp_path / "told").read_text() == expected


def test_the_doctor_blames_the_library_and_not_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, str(in_folder(tmp_path / "own")))
    file = save_gguf(tmp_path / "m.gguf", random_module("qwen2"), "F16")
    finding = doctor._model(str(file), {"backend": "llama-cpp"})
    assert "cannot be loaded" in finding.found
    assert f"unset {VARIABLE}" in finding.remedy


def defaults_of(layout: Layout) -> bytes:
    """The bytes of a structure with the documented defaults."""
    filled = layout.structure()
    for name, _ in layout.structure._fields_:
        if name in layout.defaults:
            setattr(filled, name, layout.defaults[name])
    return bytes(filled) + bytes(64)


@pytest.mark.parametrize("layouts", [CONTEXT_LAYOUTS, MODEL_LAYOUTS], ids=["context", "model"])
def test_one_layout_fits_each_library(layouts: list[Layout]) -> None:
    for layout in layouts:
        data = defaults_of(layout)
        assert fitting(layouts, lambda layout, data=data: layout.from_buffer_copy(data)) is layout


@pytest.mark.parametrize("layouts", [CONTEXT_LAYOUTS, MODEL_LAYOUTS], ids=["context", "model"])
def test_a_layout_of_tomorrow_fits_none(layouts: list[Layout]) -> None:
    """A field more at the beginning, or in the middle."""
    data = defaults_of(layouts[0])
    for position in (0, 20):
        moved = data[:position] + bytes(8) + data[position:-8]
        assert fitting(layouts, lambda layout, moved=moved: layout.from_buffer_copy(moved)) is None


FOREIGN = """
struct wide { int numbers[100]; };
struct wide llama_context_default_params(void) { struct wide w = {{7}}; return w; }
struct wide llama_model_default_params(void) { struct wide w = {{7}}; return w; }
"""


def has_compiler() -> bool:
    try:
        return subprocess.run(["cc", "--version"], check=False, capture_output=True).returncode == 0
    except OSError:
        return False


@pytest.mark.skipif(not has_compiler(), reason="there is no C compiler")
def test_a_library_without_our_functions_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, library = tmp_path / "foreign.c", tmp_path / library_files.library_names()[0]
    source.write_text(FOREIGN, "ascii")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    assert ctypes.CDLL(str(library)).llama_context_default_params
    monkeypatch.setenv(VARIABLE, str(library))
    with pytest.raises(UnsupportedModel, match=rf"lacks .*; unset {VARIABLE}, or name"):
        examine()


@pytest.mark.skipif(not has_package(), reason="llama-cpp-python is not installed")
def test_it_says_what_the_library_is() -> None:
    about = examine()
    assert about["source"] == "llama-cpp-python"
    assert about["devices"]
    finding = doctor._llama_cpp()
    assert not finding.remedy
    assert about["path"] in finding.found
    assert about["devices"][0] in finding.found
