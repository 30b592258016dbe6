"""How each system tells which instructions of Arm are here, played on Linux."""

from __future__ import annotations

import ctypes
import os
import platform
import sysconfig
from types import SimpleNamespace

import pytest
from fake_systems import FakeWindows, answer_sysctl
from text_cases import data_cases

from accel.native import aligned_memory, cpu_features
from accel.native.levels import level_here
from accel.native.processor import processor
from lsp_server.commands.cli.doctor import _processor
from operating_system.system import TRANSLATED, is_translated

SYSCTL = "hw.optional.arm.FEAT_"


def described() -> str:
    """The processor as this system tells of it, read anew."""
    return processor.__wrapped__()


@data_cases()
def test_macos_answers_for_each_feature(
    macos: None, monkeypatch: pytest.MonkeyPatch, model: str, features: dict[str, int],
    level: str | None,
) -> None:  # fmt: skip
    """sysctl answers what it knows, and complains of the rest elsewhere."""
    known: dict[str, object] = {"machdep.cpu.brand_string": model}
    known |= {f"{SYSCTL}{name}": value for name, value in features.items()}
    answer_sysctl(monkeypatch, known)
    monkeypatch.setattr(platform, "machine", lambda: "arm64")
    assert described().splitlines()[0] == f"arm64 {model}"
    assert level_here(described()) == level
    # Rosetta, which is an x86 for all that it runs, asks the same system.
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    assert level_here(described()) is None


@pytest.mark.parametrize(
    ("model", "numbers", "level"),
    [
        ("Snapdragon 835", set(), None),
        ("Snapdragon 850", {34, 43}, "neon-dotprod"),
        ("Microsoft SQ1", {34, 43, 45}, "neon-dotprod"),
        ("Snapdragon 8cx Gen 3", {34, 43, 45}, "neon-dotprod"),
        ("Snapdragon X Elite", {34, 43, 45, 66, 67, 68}, "neon-i8mm"),
        ("Snapdragon X Elite, Windows 11 23H2", {34, 43, 45}, "neon-dotprod"),
        ("Microsoft Cobalt 100", {34, 43, 45, 46, 47, 57, 66, 67}, "neon-i8mm"),
        ("Ampere Altra", {34, 43, 45}, "neon-dotprod"),
        ("Apple M2 in a virtual machine", {34, 43, 45, 66}, "neon-i8mm"),
        ("i8mm alone", {66}, None),
    ],
)
def test_windows_answers_for_each_number(
    windows: FakeWindows, monkeypatch: pytest.MonkeyPatch, model: str, numbers: set[int],
    level: str | None,
) -> None:  # fmt: skip
    kernel = SimpleNamespace(IsProcessorFeaturePresent=lambda number: int(number in numbers))
    monkeypatch.setattr(ctypes, "windll", SimpleNamespace(kernel32=kernel), raising=False)
    monkeypatch.setattr(platform, "machine", lambda: "ARM64")
    monkeypatch.setattr(platform, "processor", lambda: model)
    monkeypatch.setattr(sysconfig, "get_platform", lambda: "win-arm64")
    assert described().splitlines()[0] == f"ARM64 {model}"
    assert level_here(described()) == level
    # A Python of x86 there is told of Arm, too, and would run none of its code.
    monkeypatch.setattr(sysconfig, "get_platform", lambda: "win-amd64")
    assert level_here(described()) is None


def test_windows_on_x86_is_not_asked(windows: FakeWindows, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "AMD64")
    monkeypatch.setattr(platform, "processor", lambda: "Intel64 Family 6")
    monkeypatch.setattr(sysconfig, "get_platform", lambda: "win-amd64")
    assert described() == "AMD64 Intel64 Family 6"


@pytest.mark.parametrize(
    ("machine", "line", "first_level"), [("arm64", 128, 128 << 10), ("x86_64", 64, None)]
)
def test_apple_has_longer_lines_and_larger_caches(
    macos: None, monkeypatch: pytest.MonkeyPatch, machine: str, line: int, first_level: int | None
) -> None:
    names = {name: getattr(os.uname(), name) for name in ("sysname", "nodename", "release")}
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(**names, machine=machine))
    assert aligned_memory.line_bytes() == line
    if first_level is not None:
        assert cpu_features.first_level({"dotprod"}) == first_level
    assert cpu_features.first_level(set()) == 32 << 10
    monkeypatch.undo()
    assert aligned_memory.line_bytes() == 64
    assert cpu_features.first_level({"dotprod"}) == 64 << 10
    assert cpu_features.first_level({"avxvnni"}) == 48 << 10


@data_cases()
def test_a_python_that_rosetta_translates_is_told_so(
    macos: None, monkeypatch: pytest.MonkeyPatch, machine: str, known: dict[str, object],
    is_so: bool,
) -> None:  # fmt: skip
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(machine=machine))
    answer_sysctl(monkeypatch, known)
    assert is_translated() == is_so
    assert bool(_processor().remedy) == is_so
    assert "\n" not in TRANSLATED


@data_cases()
def test_a_python_that_windows_translates_is_told_so(
    windows: FakeWindows, monkeypatch: pytest.MonkeyPatch, machine: str, python: str, is_so: bool
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: machine)
    monkeypatch.setattr(sysconfig, "get_platform", lambda: python)
    assert is_translated() == is_so


def test_linux_is_never_translated() -> None:
    """Its emulators say nothing of themselves."""
    assert not is_translated()
