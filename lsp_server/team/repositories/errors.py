"""Errors that the server reports to a client, each with its HTTP status and code."""

from __future__ import annotations

from lsp_server.shared.errors import RedraftError


class RepositoryError(RedraftError):
    """Base of these errors. No message holds a path of the server, or anything of another key."""

    status = 400
    code = "invalid_request"


class InvalidUpload(RepositoryError):
    """A name, path, hash, list or body is not as it has to be."""


class NoSuchRepository(RepositoryError):
    """There is no repository of this id, or it is another key's: nobody is told which."""

    status = 404
    code = "repository_not_found"

    def __init__(self) -> None:
        super().__init__("there is no such repository; register it first")


class QuotaExceeded(RepositoryError):
    """A key keeps as much as it may."""

    status = 413
    code = "quota_exceeded"


class TooLarge(RepositoryError):
    """A body or file is larger than what is taken, before or after it was decompressed."""

    status = 413
    code = "too_large"


class RefusedContent(RepositoryError):
    """A file's content is not kept: it seems to hold a credential, or it is no text."""

    status = 422
    code = "content_refused"


class BufferMismatch(RepositoryError):
    """An edit does not fit to the text that the server has of a buffer."""

    status = 409
    code = "buffer_mismatch"

    def __init__(self) -> None:
        super().__init__("the text of the buffer is not known here; send it whole")
