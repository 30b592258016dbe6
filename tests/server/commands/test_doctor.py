"""``redraft doctor`` on systems that know less of themselves than this one."""

from __future__ import annotations

import os
from pathlib import Path

import psutil
import pytest
from breaking import with_config
from small_model import SMALL_MODEL
from text_cases import data_cases

from lsp_server.commands.cli import doctor as doctor_command
from lsp_server.models.choices import write_choice


def found(name: str, model: str | None) -> doctor_command.Finding:
    return next(one for one in doctor_command.examine(model) if one.what == name)


@pytest.mark.parametrize("missing", ["the name", "the function"])
def test_free_memory_is_found_without_sysconf(
    missing: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def unknown(name: str) -> int:
        raise ValueError(f"unrecognized configuration name {name}")

    # It asks for other names when it is imported; that is of this system alone.
    assert psutil.virtual_memory().available
    if missing == "the name":
        monkeypatch.setattr(os, "sysconf", unknown)
    else:
        monkeypatch.delattr(os, "sysconf")
    monkeypatch.setattr(doctor_command, "level_here", lambda: None)
    finding = found("free memory", str(tmp_path / "nothing"))
    assert finding.found.endswith(" GiB")
    assert not finding.fatal


def test_the_models_fault_is_told_with_its_own_remedy(tmp_path: Path) -> None:
    model = with_config(tmp_path, num_hidden_layers=3)
    finding = found("model", model)
    assert finding.fatal
    assert "lacks the weights of layer 2" in finding.found
    assert finding.remedy == "fetch the whole model"


def test_it_says_which_model_was_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert "none" in found("chosen model", None).found
    write_choice("completion", str(tmp_path / "gone.gguf"))
    finding = found("chosen model", None)
    assert "gone.gguf" in finding.found
    assert finding.remedy
    assert not finding.fatal
    write_choice("completion", "")
    write_choice("edits", str(tmp_path))
    finding = found("chosen model", None)
    assert "suggestions: none, nothing was chosen" in finding.found
    assert f"edits: {tmp_path}, chosen with `redraft models use`" in finding.found
    assert not finding.remedy


def test_it_says_whether_llama_cpp_is_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("accel.models.llama_cpp.library_files.is_installed", lambda: False)
    finding = found("llama.cpp", None)
    assert "pip install 'redraft[llama-cpp]'" in finding.found
    assert not finding.fatal


def test_it_says_how_the_model_is_asked_and_what_is_wrong_with_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound = doctor_command._formats(str(SMALL_MODEL))
    assert (sound.found, sound.remedy) == ("holes as Redraft, edits by its chat template", "")
    monkeypatch.setattr(
        "accel.text.format_check.format_problems", lambda tokenizer: ["it lacks <|fim_middle|>"]
    )
    broken = doctor_command._formats(str(SMALL_MODEL))
    assert broken.found.endswith("; it lacks <|fim_middle|>")
    assert broken.remedy == "take another file of this model"
    nothing = doctor_command._formats(str(tmp_path / "nothing"))
    assert "cannot be opened" in nothing.found


def test_it_says_which_proxy_and_which_certificates_count(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in os.environ:
        if name.lower().endswith("_proxy") or name == "SSL_CERT_DIR":
            monkeypatch.delenv(name)
    monkeypatch.setenv("https_proxy", "http://me:secret@proxy.company.test:3128")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "gone.pem"))
    finding = found("network", None)
    assert finding.found.startswith("https by http://proxy.company.test:3128; certificates of ")
    assert "gone.pem cannot be read" in finding.remedy
    monkeypatch.delenv("SSL_CERT_FILE")
    assert found("network", None).found.endswith("certificates of the system")


@data_cases()
@pytest.mark.parametrize("came", [True, False])
def test_it_says_what_code_is_for_where_it_is_from_and_where_it_was_tested(
    system: str, level: str | None, told: str, came: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor_command, "level_here", lambda: level)
    monkeypatch.setattr(doctor_command, "packed_code", lambda: Path("archive") if came else None)
    monkeypatch.setattr(doctor_command, "is_linux", lambda: system == "linux")
    finding = doctor_command._processor()
    origin = "which came with Redraft" if came else "which is compiled here"
    assert told.format(origin) in finding.found
    assert not finding.remedy
