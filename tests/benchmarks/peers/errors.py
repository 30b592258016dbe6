"""What stands between us and other systems."""

from __future__ import annotations

from accel.errors import AccelError


class PeerUnavailable(AccelError):
    """A system that we compare with cannot be run here; the message says why."""
