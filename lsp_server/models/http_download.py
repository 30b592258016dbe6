"""Downloads a file over HTTP by ``huggingface_hub``'s client, and resumes where it stopped.

Its ``http_get`` writes pieces of 10 MB: what comes of one before a connection ends is lost.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from lsp_server.models.progress import Report
from lsp_server.shared.errors import RedraftError

MOST_TRIES = 6
"""Connections in a row that may end before anything came."""
_BETWEEN_TRIES_S = 1.0
_TIMEOUT_S = 30.0
_BUSY = (408, 429)
"""Answers after which the client waits as long as the server says, and asks again."""
_RESUMED = 206
_PAGES = ("text/html", "application/xhtml", "application/json")
"""Types of what is no model: a login page, or an error that is no error by its status."""


def prepare_hub() -> None:
    """Have ``huggingface_hub``, which reads the environment when it is imported, tell the server
    nothing about this machine, and take an empty ``HF_ENDPOINT`` for none."""
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    if endpoint := os.environ.get("HF_ENDPOINT", "").strip():
        os.environ["HF_ENDPOINT"] = endpoint
    else:
        os.environ.pop("HF_ENDPOINT", None)


def download(
    url: str,
    file: Path,
    report: Report,
    *,
    nbytes: int | None = None,
    headers: Mapping[str, str] | None = None,
) -> None:
    """Append to ``file`` what is missing of it, each byte as it comes, over as many connections as
    it takes. nbytes: of the whole file, where it is known. Nothing is written of an answer that is
    of another length or type, and nothing that has come is ever lost. Raises RedraftError for such
    an answer, OSError where the file cannot be written, and what the client raises."""
    import httpx2

    tries = MOST_TRIES
    while (before := _size(file)) != nbytes:
        problem: Exception | None = None
        try:
            _append(url, file, report, nbytes, headers or {})
            if nbytes is None:
                return
        except httpx2.TransportError as error:
            problem = error
        tries = MOST_TRIES if _size(file) > before else tries - 1
        if not tries:
            raise problem or RedraftError("the server sends nothing")
        if problem is not None:
            time.sleep(_BETWEEN_TRIES_S)


def try_again(unfinished: Path | None) -> str:
    """Return advice about a download that broke off, by the bytes of it that are here."""
    present = _size(unfinished) if unfinished is not None else 0
    rest = f", it goes on after the {present / 1e6:.1f} MB that came" if present else ""
    return f"try again{rest}"


def _append(
    url: str, file: Path, report: Report, nbytes: int | None, headers: Mapping[str, str]
) -> None:
    """Append the bytes of one connection to the file."""
    from huggingface_hub.utils import (  # type: ignore[attr-defined]
        hf_raise_for_status,
        http_stream_backoff,
    )

    before = _size(file)
    request_headers = {**headers, "range": f"bytes={before}-"} if before else dict(headers)
    # A compressed answer has no length, and does not go on in its middle.
    request_headers["accept-encoding"] = "identity"
    with http_stream_backoff(
        "GET",
        url,
        headers=request_headers,
        timeout=_TIMEOUT_S,
        retry_on_exceptions=(),
        retry_on_status_codes=_BUSY,
    ) as response:
        hf_raise_for_status(response)
        start = before if response.status_code == _RESUMED else 0
        whole_bytes = _whole_length(response.headers, start)
        _check_answer(response.headers, start, whole_bytes, nbytes)
        # A server that cannot go on in the middle begins anew: what is here is passed over.
        passed_over = before - start
        done, total = before, nbytes or whole_bytes or 0
        report("fetching", done, total)
        with file.open("ab", buffering=0) as target:
            for piece in response.iter_bytes():
                new = piece[passed_over:]
                passed_over -= len(piece) - len(new)
                if nbytes is not None and done + len(new) > nbytes:
                    raise RedraftError(f"the server sends more than the {nbytes} bytes of the file")
                _write(target, new)
                done += len(new)
                report("fetching", done, total)


def _whole_length(headers: Mapping[str, str], start: int) -> int | None:
    """Return the file's bytes, of which an answer has those from ``start``; None if untold."""
    length = headers.get("content-length", "")
    return start + int(length) if length.isdecimal() and "content-encoding" not in headers else None


def _check_answer(
    headers: Mapping[str, str], start: int, total: int | None, nbytes: int | None
) -> None:
    """Raise RedraftError where an answer is not what was asked for."""
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    range_match = re.match(r"bytes (\d+)-", headers.get("content-range", ""))
    if start and range_match is not None and int(range_match[1]) != start:
        raise RedraftError(
            f"the server sends bytes from {range_match[1]} on, and {start} was asked for"
        )
    is_known = total is not None and nbytes is not None
    if total != nbytes if is_known else kind.startswith(_PAGES):
        sent = f"{total} bytes" if total is not None else "a page"
        type_text = f" of {kind}" if kind else ""
        expected = f", where {nbytes} were expected" if nbytes is not None else ""
        raise RedraftError(
            f"the server sends {sent}{type_text}{expected}: a login page of this network may be in "
            "its place; open any page in a browser, then try again"
        )


def _write(target: IO[bytes], piece: bytes) -> None:
    """All of it, or OSError with as much as fits."""
    remaining = memoryview(piece)
    while remaining:
        remaining = remaining[target.write(remaining) :]


def _size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0
