"""A model from Hugging Face, by ``huggingface_hub``: it shows how far it is, and minds proxies,
``HF_ENDPOINT``, ``HF_TOKEN`` and ``HF_HUB_OFFLINE``.

Its ``hf_hub_download`` begins anew after it was ended; here a file goes on where it stopped.
"""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path

from lsp_server.errors import RedraftError
from lsp_server.models.manifest import HubSource
from lsp_server.models.progress import Report, bar_for

UNFINISHED = "weights.incomplete"
_SHA256 = re.compile(r"[0-9a-f]{64}")


def download_from_hub(
    source: HubSource, folder: Path, nbytes: int, sha256: str, report: Report
) -> Path:
    """The file, in ``folder``, where an unfinished one stays for the next try. What the server says
    of size and hash must be what is expected; the content is for the caller to check. Raises
    RedraftError."""
    # It would tell the server about this machine, and ask it for more than the file.
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    from huggingface_hub import get_hf_file_metadata, get_token, hf_hub_url
    from huggingface_hub.errors import (
        EntryNotFoundError,
        GatedRepoError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )
    from huggingface_hub.file_download import http_get

    url = hf_hub_url(source.repository, source.path, revision=source.revision)
    token = get_token()
    file = folder / UNFINISHED
    if file.is_file() and file.stat().st_size > nbytes:
        file.unlink()
    begun = False
    try:
        found = get_hf_file_metadata(url, token=token)
        _check_told(source, found.size, found.etag, nbytes, sha256)
        begun = True
        with file.open("ab") as target:
            http_get(
                url,
                target,
                resume_size=file.stat().st_size,
                headers={"authorization": f"Bearer {token}"} if token else None,
                expected_size=nbytes,
                displayed_filename=Path(source.path).name,
                tqdm_class=bar_for(report),
            )
    except RedraftError:
        raise
    except GatedRepoError as error:
        raise RedraftError(
            f"{source.repository} wants its licence accepted: do that on its page, then set "
            "HF_TOKEN to a token of yours"
        ) from error
    except (RepositoryNotFoundError, RevisionNotFoundError) as error:
        raise RedraftError(
            f"{source.shown} is not there, or wants a token: set HF_TOKEN"
        ) from error
    except EntryNotFoundError as error:
        raise RedraftError(f"{source.path} is not in {source.shown}") from error
    except Exception as error:  # its HTTP library has another name from version to version
        raise RedraftError(_reason(error, begun)) from error
    return file


def _reason(error: Exception, begun: bool) -> str:
    """Why a download failed, and what to do; ``begun``: the server had answered before."""
    told = _first_line(error)
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"the disk is full ({told}); free some space and try again, it goes on there"
    if begun:
        return f"the download broke off ({told}); try again, it goes on there"
    return (
        f"the server cannot be reached ({told}); check the network, the proxy and HF_ENDPOINT, or "
        "give the file with --from"
    )


def _check_told(
    source: HubSource, size: int | None, etag: str | None, nbytes: int, sha256: str
) -> None:
    """The entity tag of a large file is its sha256. Raises RedraftError."""
    if size is not None and size != nbytes:
        raise RedraftError(f"{source.shown} has {size} bytes, and {nbytes} were checked")
    if etag is not None and _SHA256.fullmatch(etag) and etag != sha256:
        raise RedraftError(f"{source.shown} has another sha256 ({etag[:12]}…) than was checked")


def _first_line(error: Exception) -> str:
    lines = str(error).splitlines()
    return lines[0] if lines else type(error).__name__
