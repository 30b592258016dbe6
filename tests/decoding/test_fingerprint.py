"""Fingerprints of models on this machine."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

import pytest

from accel.models.fingerprint import version_of

PACKAGES = (
    *("numba", "llvmlite", "numpy", "tokenizers", "psutil", "filelock", "pygls", "lsprotocol"),
    *("platformdirs", "pytest", "ruff", "mypy"),
)


@pytest.mark.parametrize("package", PACKAGES)
def test_a_version_is_that_of_the_metadata(package: str) -> None:
    assert version_of(package) == metadata.version(package)


def test_what_is_not_installed_has_no_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lacking_parts-2.0.dist-info").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path))
    assert version_of("lacking") == ""
    assert version_of("lacking_parts") == "2.0"
