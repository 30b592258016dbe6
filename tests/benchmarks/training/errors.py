"""What can go wrong in training."""

from __future__ import annotations

from accel.errors import AccelError


class TrainingError(AccelError):
    """A training run that cannot go on; the message says what to do next."""
