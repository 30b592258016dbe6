"""Downloads a file over HTTP by ``huggingface_hub``'s client, and resumes where it stopped."""

from __future__ import annotations

from pathlib import Path

from lsp_server.models.progress import Report, bar_for

MOST_RESETS = 20
"""Connections in a row that may end while something comes."""


def download(
    url: str,
    file: Path,
    report: Report,
    *,
    nbytes: int | None = None,
    headers: dict[str, str] | None = None,
) -> None:
    """Append to ``file`` what is missing of it, going on after connections that are reset, too.
    nbytes: of the whole file, where it is known. Raises what ``http_get`` raises."""
    import httpx2
    from huggingface_hub.file_download import http_get

    for tries_left in reversed(range(MOST_RESETS)):
        with file.open("ab") as target:
            before = file.stat().st_size
            try:
                return http_get(
                    url,
                    target,
                    resume_size=before,
                    # A compressed answer has no length, and does not go on in its middle.
                    headers={"accept-encoding": "identity", **(headers or {})},
                    expected_size=nbytes,
                    displayed_filename=file.name,
                    tqdm_class=bar_for(report),
                )
            except httpx2.NetworkError:
                target.flush()
                if not tries_left or file.stat().st_size == before:
                    raise
    return None
