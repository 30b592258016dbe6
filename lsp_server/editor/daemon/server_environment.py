"""Reads a server's address and key from the environment of the front. Standard library only."""

from __future__ import annotations

import os

VARIABLES = {"url": "REDRAFT_SERVER_URL", "key": "REDRAFT_SERVER_KEY"}
"""By the names that the settings have in the section ``server``."""


def server_environment() -> dict[str, str]:
    """Address and key of this process's environment, as far as they are given."""
    values = {name: os.environ.get(variable, "") for name, variable in VARIABLES.items()}
    return {name: value for name, value in values.items() if value}


def without_server() -> dict[str, str]:
    """This process's environment for a child that is to know of no server and no key."""
    hidden = set(VARIABLES.values())
    return {name: value for name, value in os.environ.items() if name not in hidden}
