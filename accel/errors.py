"""Errors outside of our own code. Every message is one line and says what to do next."""

from __future__ import annotations

NO_MODEL = "no model is chosen"
HOW_TO_CHOOSE = (
    "fetch the default (98 MB) with `redraft models get default`, or choose one of this machine: "
    "redraft models use NAME"
)


class AccelError(Exception):
    """Base of everything that accel raises about the world."""


class InvalidRequest(AccelError):
    """A request or option that cannot be served as it stands."""


class PromptTooLong(InvalidRequest):
    """A prompt with more tokens than the model reads."""


class ModelError(AccelError):
    """A model that cannot be loaded. The message is ``CAUSE; REMEDY``, or the cause alone."""

    def __init__(self, cause: str, remedy: str = "") -> None:
        super().__init__(f"{cause}; {remedy}" if remedy else cause)
        self.cause = cause
        self.remedy = remedy


class ModelNotFound(ModelError):
    """No such model folder, or a model id that is not on this machine."""


class BrokenModel(ModelError):
    """A model folder that is there but damaged or incomplete."""


class UnsupportedModel(ModelError):
    """A sound model that this engine refuses: pickled weights, remote code, no causal LM."""


class UnsupportedPrompt(AccelError):
    """The model has no special tokens for this kind of job."""


class OutOfMemory(AccelError):
    """The model, or the KV cache of a request, does not fit into the device's memory."""


class Interrupted(AccelError):
    """A forward was ended by ``Model.interrupt``. Its results are dropped; it may begin again."""


class SessionBusy(AccelError):
    """Another generation has taken the session over; this one cannot go on."""


class BackendDied(AccelError):
    """The process that computes a model ended; the next request starts another one."""


class InvalidEnvironment(AccelError):
    """A variable of the environment has a value that nothing can be computed with."""
