"""A snapshot of an engine, from the engine process to its clients."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, Literal

from lsp_server.shared.contract.codec import to_json
from lsp_server.shared.contract.prompt_length import PromptLength

State = Literal["idle", "loading", "ready", "failed"]


def _of_model(default: Any) -> Any:
    """Return a field that the clients of a server are told."""
    return field(default=default, metadata={"of_model": True})


@dataclass(frozen=True, slots=True)
class EngineStatus:
    """A field that is added here is carried to ``redraft status`` and through Ray without more;
    one of the model (``_of_model``) to the clients of a server, too."""

    state: State = "idle"
    message: str = ""
    """What it is doing, or why it failed."""
    remedy: str = ""
    """What helps, where it failed."""
    lasting: bool = False
    """A failure cannot pass by itself: the model's files are wrong."""
    model: str = _of_model("")
    """Name or path."""
    dtype: str = _of_model("")
    """Number format of its weights; empty where it is not told."""
    fills: bool = _of_model(True)
    """Whether it reads the text after the cursor."""
    max_tokens: int = _of_model(0)
    """Tokens that it reads and writes at most; 0 until that is known."""
    chats: bool = _of_model(True)
    """It has a chat template."""
    takes_tools: bool = _of_model(False)
    """Its chat template says of functions that it may call."""
    prompt_seconds: tuple[float, ...] = _of_model(())
    """See ``PromptLength``."""
    notice: str = ""
    """What is wrong with its prompt formats; empty for nothing."""
    computed_by: str = ""
    """What computes it on this machine and how, in words; empty where it is not told."""
    compiling: str = ""
    """What is still compiled on this machine, and not used until then; empty for nothing."""
    next_edit_format: str = ""
    """In which format it is asked for next edits; empty where it was not trained for them."""
    next_edit_formats: tuple[str, ...] = ()
    """Those whose tokens its vocabulary has."""
    places: int = 1
    """How many requests share its forwards."""
    kv_bytes: int = 0
    """Of the KV caches, when they last grew or shrank by much."""
    kv_budget: int = 0
    """Bytes that they take at most."""
    tokenizer: str = ""
    """Its SHA-256."""
    workspaces: tuple[str, ...] = ()
    """Folders whose datastores are mapped."""
    pid: int | None = None
    """Process id of the engine on this machine, where one runs."""
    speedup: float | None = None
    """Time of plain decoding over time with drafts, where both were measured."""
    server: dict[str, Any] | None = None
    """The server that answers: ``url``, what ``answers`` (``server``, ``local`` or ``nothing``),
    whether it is ``drafted``, the ``reason`` why it is not the server, and ``nextTryS``. None of an
    engine of this machine."""
    server_note: str = ""
    """What the user should know of the server that was to answer; empty for nothing."""

    @property
    def prompt_length(self) -> PromptLength:
        """The longest prompts of the model."""
        return PromptLength(self.prompt_seconds)

    @property
    def of_model(self) -> dict[str, Any]:
        """Return the fields that a server tells its clients, as JSON."""
        names = [member.name for member in fields(self) if member.metadata.get("of_model")]
        return {name: to_json(getattr(self, name)) for name in names}
