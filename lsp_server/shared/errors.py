"""Errors of the world that the server and the commands tell the user in one line."""

from __future__ import annotations


class RedraftError(Exception):
    """Base of our errors. The message is one line and says what to do next."""

    private = False
    """The message may quote a document that is held back: it is for the user, not for the log."""


class ProtocolError(RedraftError):
    """A peer sent bytes that are no message of the protocol."""

    def __init__(self, message: str, code: int = -32700) -> None:
        super().__init__(message)
        self.code = code
        """JSON-RPC error code to answer with."""


class DaemonUnavailable(RedraftError):
    """No daemon runs and none could be started."""


class UnsafeSocketFolder(RedraftError):
    """Another user could write to the folder of the daemon's socket."""


class NoUserFolder(RedraftError):
    """Neither the home nor the folder for temporary files can be written to."""


class WorkTakesTooLong(RedraftError):
    """Work on a text was given up: the text is too large, or too much in it is to be looked at."""


class EngineUnavailable(RedraftError):
    """The engine process is not running, or it died while it worked on the request."""


class ModelUnavailable(EngineUnavailable):
    """The model cannot be loaded. The message is ``CAUSE; REMEDY``."""

    def __init__(self, cause: str, remedy: str) -> None:
        super().__init__(f"{cause}; {remedy}" if remedy else cause)
        self.cause = cause
        self.remedy = remedy


class ServerUnavailable(ModelUnavailable):
    """The server does not answer, or asks to be left alone for ``retry_after_s`` seconds."""

    def __init__(self, cause: str, remedy: str, retry_after_s: float = 0.0) -> None:
        super().__init__(cause, remedy)
        self.retry_after_s = retry_after_s


class MemoryTaken(ModelUnavailable):
    """The memory that the model needs is held by another one that is at work."""


class EngineBusy(RedraftError):
    """A request waited for its turn as long as its sender allows."""


class EngineFailed(RedraftError):
    """The engine answered a request with an error; the message is the engine's own."""

    def __init__(self, message: str, kind: str = "") -> None:
        super().__init__(message)
        self.kind = kind
        """Class name of the error in the engine process."""


class ServerRefused(EngineFailed):
    """A server refuses one request. ``details``: its whole message."""

    def __init__(self, message: str, kind: str, details: str) -> None:
        super().__init__(message, kind)
        self.details = details


class NothingToContinue(RedraftError):
    """A completion is asked for where there is no text at all."""


class EditRefused(RedraftError):
    """An edit cannot be made or cannot be offered; the message says why."""


class StaleDocument(EditRefused):
    """The document changed where the edit was to be made."""


class UnknownDocument(RedraftError):
    """A request names a document that is not open."""


class BenchError(RedraftError):
    """A benchmark cannot run as asked: its cases, options or a peer are not there."""


class DeployError(RedraftError):
    """A server cannot be deployed as asked: an option is wrong, or its cluster is not there."""
