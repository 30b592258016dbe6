"""A file from Hugging Face, by ``huggingface_hub``: it minds proxies, ``HF_ENDPOINT``, ``HF_TOKEN``
and ``HF_HUB_OFFLINE``.

Its ``hf_hub_download`` begins anew after it was ended; here a file goes on where it stopped.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lsp_server.models.http_download import download, prepare_hub, try_again
from lsp_server.models.manifest import HubSource, Part
from lsp_server.models.progress import Report
from lsp_server.shared.errors import RedraftError
from lsp_server.shared.network import first_line, network_remedy

UNFINISHED = "weights.incomplete"
_SHA256 = re.compile(r"[0-9a-f]{64}")


def download_from_hub(source: HubSource, piece: Part, folder: Path, report: Report) -> Path:
    """Return the file, in ``folder``, where an unfinished one stays for the next try. What the
    server says of size and hash must be what is expected; the content is for the caller to check.
    Raises RedraftError."""
    file = folder / UNFINISHED
    with hub_errors(source, piece.path):
        from huggingface_hub import get_token, hf_hub_url

        url = hf_hub_url(source.repository, piece.path, revision=source.revision)
        token = get_token()
        nbytes = size_in_hub(source, piece)
    if file.is_file() and file.stat().st_size > nbytes:
        file.unlink()
    headers = {"authorization": f"Bearer {token}"} if token else None
    with hub_errors(source, piece.path, unfinished=file):
        download(url, file, report, nbytes=nbytes, headers=headers)
    return file


def size_in_hub(source: HubSource, piece: Part) -> int:
    """Return bytes of a file, by the hub's own record, which must agree with what was checked.
    Raises RedraftError."""
    with hub_errors(source, piece.path):
        from huggingface_hub import get_hf_file_metadata, get_token, hf_hub_url

        url = hf_hub_url(source.repository, piece.path, revision=source.revision)
        metadata = get_hf_file_metadata(url, token=get_token())
    if metadata.size is not None and piece.nbytes not in (0, metadata.size):
        raise RedraftError(
            f"{source.shown} has {metadata.size} bytes, and {piece.nbytes} were checked"
        )
    # The entity tag of a large file is its sha256.
    etag = metadata.etag
    if etag is not None and _SHA256.fullmatch(etag) and etag != piece.sha256:
        raise RedraftError(f"{source.shown} has another sha256 ({etag[:12]}…) than was checked")
    nbytes = piece.nbytes or metadata.size
    if not nbytes:
        raise RedraftError(f"{source.shown} does not say how large {piece.file} is")
    return nbytes


@contextmanager
def hub_errors(
    source: HubSource, path: str = "", *, unfinished: Path | None = None
) -> Iterator[None]:
    """Errors of the hub and of the network become RedraftError, with what to do; ``unfinished``:
    the file that a server that had answered was sending."""
    prepare_hub()
    from huggingface_hub.errors import (
        EntryNotFoundError,
        GatedRepoError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    try:
        yield
    except RedraftError:
        raise
    except GatedRepoError as error:
        raise RedraftError(
            f"{source.repository} asks for its licence to be accepted: do that on its page, then "
            "set HF_TOKEN to a token of yours"
        ) from error
    except (RepositoryNotFoundError, RevisionNotFoundError) as error:
        raise RedraftError(
            f"{source.shown} is not there, or needs a token: set HF_TOKEN"
        ) from error
    except EntryNotFoundError as error:
        raise RedraftError(f"{path} is not in {source.shown}") from error
    except Exception as error:  # its HTTP library has another name from version to version
        from huggingface_hub.constants import ENDPOINT

        raise RedraftError(_reason(error, unfinished, network_remedy(error, ENDPOINT))) from error


def _reason(error: Exception, unfinished: Path | None, remedy: str) -> str:
    """Return why a request failed and what to do. ``remedy``: about proxy and certificates."""
    message, again = first_line(error), try_again(unfinished)
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"the disk is full ({message}); free some space and {again}"
    status = getattr(getattr(error, "response", None), "status_code", 0)
    if status == 429:
        return "the server has had too many requests (429); try again later, or set HF_TOKEN"
    if status in (401, 403):
        return f"the server refuses ({status}); set HF_TOKEN to a token that may read it"
    if unfinished is not None:
        return f"the download broke off ({message}); {again}"
    advice = remedy or "check the network and HF_ENDPOINT"
    return f"the server cannot be reached ({message}); {advice}, or give the file with --from"
