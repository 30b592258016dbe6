"""Where an engine is: a child process, or somewhere else that takes the same frames."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from lsp_server.protocol.framing import Frame

OnFrame = Callable[[Frame], None]
OnDeath = Callable[[], None]


class EngineConnection(Protocol):
    """Frames to and from an engine, as :class:`lsp_server.processes.child.Child` has them."""

    @property
    def alive(self) -> bool:
        """Frames can be sent."""

    @property
    def pid(self) -> int | None:
        """Process id of the engine, where it is one process of this machine."""

    @property
    def deaths(self) -> int:
        """How often it died one time after another, without having worked in between."""

    @property
    def back_off_s(self) -> float:
        """How long to wait before the next start."""

    async def start(self) -> None:
        """Have an engine; frames sent from now on reach it."""

    def send(self, frame: Frame) -> bool:
        """Send a frame; whether there was somebody to send it to."""

    def forgive(self) -> None:
        """The engine works: its next restart need not wait."""

    def kill(self) -> None:
        """End what is under way, now."""

    async def close(self) -> None:
        """End it and wait for that."""


Connect = Callable[[OnFrame, OnDeath], EngineConnection]
"""Makes the connection of a client: what is called with each frame, and at the engine's death."""
