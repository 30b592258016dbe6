"""The machine around the container that this process is in."""

from __future__ import annotations

from pathlib import Path

HOST_NAMES = ("host.docker.internal", "host.containers.internal")
"""What Docker and Podman call it."""
MARKS = (Path("/.dockerenv"), Path("/run/.containerenv"))
"""Files that they put into every container."""
KNOWN_HOSTS = Path("/etc/hosts")


def is_container_host(name: str) -> bool:
    """Return True if a name stands for the machine around this container, so that nothing sent
    there enters a network. The container's own table of hosts must say so, which no network can
    forge."""
    if name not in HOST_NAMES or not any(mark.exists() for mark in MARKS):
        return False
    try:
        lines = KNOWN_HOSTS.read_text("utf-8", "replace").splitlines()
    except OSError:
        return False
    return any(name in line.partition("#")[0].split()[1:] for line in lines)
