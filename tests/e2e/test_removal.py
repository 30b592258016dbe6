"""``redraft uninstall`` after a real session: what Redraft wrote goes, what others wrote stays."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from python_environments import python_environment
from small_model import SMALL_MODEL, choose_small_model

from .client import PYTHON, REPOSITORY, wait_until
from .new_account import TEXT, fetch, session

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

BASES = {".cache", ".config", ".local", ".local/share", ".local/state"}
"""Folders of every program of the user."""


def listing(folder: Path) -> dict[str, str]:
    """Every file below a folder with its hash, and every folder."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        if path.is_file() or path.is_symlink()
        else "folder"
        for path in folder.rglob("*")
        if not path.is_socket()
    }


def uninstall(
    environment: dict[str, str], *options: str, answer: str | None = None
) -> subprocess.CompletedProcess[str]:
    terminal = {} if answer is None else {"REDRAFT_ASSUME_TERMINAL": "1"}
    return subprocess.run(
        [sys.executable, "-m", "lsp_server", "uninstall", *options],
        env={**environment, **terminal}, cwd=REPOSITORY, input=answer or "", text=True,
        capture_output=True, timeout=120, check=False,
    )  # fmt: skip


def runs(pid: int) -> bool:
    """Whether a process does anything any more: nobody may have asked how it ended."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_nothing_of_ours_is_left_and_nothing_of_others_goes(
    new_home: Path, new_account: dict[str, str], tmp_path: Path
) -> None:
    before = listing(new_home)
    compiled = new_home / ".cache/redraft/machine-code/one.nbc"
    compiled.parent.mkdir(parents=True)
    compiled.write_bytes(b"as Numba writes it where no folder is named")
    choose_small_model(new_home / ".config")
    fetch(new_account, tmp_path)
    # Another interpreter is another build: its daemon is ended, too.
    other = {**new_account, PYTHON: str(python_environment(tmp_path / "python"))}
    processes = session(other, new_home / "work")
    assert len(processes) >= 3

    during = listing(new_home)
    shown = uninstall(new_account, "--dry-run")
    assert shown.returncode == 0, shown.stderr
    assert f"process {processes[0]}" in shown.stdout
    for kind in (
        "models: ",
        "compiled code: ",
        "indexes: ",
        "logs: ",
        "settings: ",
        "caches and measurements: ",
    ):
        assert kind in shown.stdout
    assert "brought.gguf" in shown.stdout
    assert "huggingface" not in shown.stdout
    refused = uninstall(new_account)
    assert (refused.returncode, "--yes" in refused.stderr) == (1, True)
    assert uninstall(new_account, answer="n\n").returncode == 0
    assert set(listing(new_home)) >= set(during)
    assert all(map(runs, processes))

    done = uninstall(new_account, answer="y\n")
    assert done.returncode == 0, done.stderr
    left = listing(new_home)
    assert {name: left[name] for name in left if name not in BASES - set(before)} == before
    assert list((new_home.parent / "temporary").iterdir()) == []
    wait_until(lambda: not any(map(runs, processes)))
    assert (SMALL_MODEL / "model.safetensors").is_file()
    assert "keeps nothing" in uninstall(new_account, "--yes").stdout
    assert set(listing(new_home)) == set(left)


def test_models_stay_where_the_user_wants_them_or_brought_them(
    new_home: Path, new_account: dict[str, str], tmp_path: Path
) -> None:
    models = new_home / ".cache/redraft/models"
    fetch(new_account, tmp_path)
    (models / "mine.gguf").write_bytes(b"mine")
    kept = uninstall(new_account, "--yes", "--keep-models")
    assert kept.returncode == 0, kept.stderr
    names = {"brought.gguf", "mine.gguf", "fetched.json"}
    assert {path.name for path in models.iterdir()} >= names
    removed = uninstall(new_account, "--yes")
    assert "mine.gguf: not fetched by Redraft" in removed.stdout
    assert [path.name for path in models.iterdir()] == ["mine.gguf"]
    fetch(new_account, tmp_path)
    (models / "brought.gguf").write_bytes(b"another")
    assert "changed since it was fetched" in uninstall(new_account, "--yes").stdout
    assert {path.name for path in models.iterdir()} == {"mine.gguf", "brought.gguf"}


def test_of_folders_that_the_user_named_only_ours_goes(
    new_home: Path, new_account: dict[str, str], tmp_path: Path
) -> None:
    data, logs, disk = tmp_path / "data", tmp_path / "logs", tmp_path / "disk"
    for file in (data / "thesis.txt", logs / "syslog.log", data / "workspaces/a/manifest"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(TEXT)
    (logs / "daemon.log.1").write_text(TEXT)
    # The cache lies on another disk, and a link in it leads elsewhere.
    (disk / "kv").mkdir(parents=True)
    (disk / "kv" / "1").write_text(TEXT)
    (disk / "thesis").symlink_to(data)
    (new_home / ".cache/redraft").symlink_to(disk)
    named = {**new_account, "REDRAFT_DATA": str(data), "REDRAFT_LOG_DIR": str(logs)}
    done = uninstall(named, "--yes")
    assert done.returncode == 0, done.stderr
    assert sorted(listing(data)) == ["thesis.txt"]
    assert sorted(listing(logs)) == ["syslog.log"]
    assert sorted(listing(disk)) == []
    assert not (new_home / ".cache/redraft").is_symlink()
