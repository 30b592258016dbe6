"""Versions of the program and of what its processes agree on."""

VERSION = "0.1.0"
"""As in pyproject.toml; a test holds the two together."""
PROTOCOL = 1
"""Of all that editors' daemons ask the team's server below ``/redraft/v1``."""
