"""Routes and version that editors' daemons and the team's server agree on."""

from __future__ import annotations

PROTOCOL = 1
"""The version of all below ``/redraft/v1``."""
