"""Addresses of servers: which may be used, and their origins."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from urllib.parse import urlsplit

from lsp_server.shared.errors import ModelUnavailable
from operating_system.system import HOST_NAMES, is_container_host

WHERE = "correct the setting redraft.server.url"


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """The address of a server."""

    origin: str
    """Scheme, host and port: what the key is bound to."""
    path: str
    """What comes before the path of every request; empty or with a slash at its start."""
    is_local: bool
    """Whether what is sent stays on this machine."""

    @classmethod
    def of(cls, url: str) -> ServerAddress:
        """Return the address that a user wrote, with or without ``/v1`` at its end. Raises
        ModelUnavailable for one that cannot or may not be used."""
        try:
            address = urlsplit(url.strip())
            host, port = address.hostname or "", address.port
        except ValueError:
            raise ModelUnavailable("the server's address is not a URL", WHERE) from None
        if address.scheme not in ("http", "https") or not host:
            raise ModelUnavailable("the server's address is not an http or https URL", WHERE)
        if address.username is not None or address.password is not None:
            raise ModelUnavailable(
                "the server's address contains a name or a password",
                f"{WHERE}, and give the key as redraft.server.key",
            )
        if address.query or address.fragment:
            raise ModelUnavailable("the server's address contains a query or a fragment", WHERE)
        is_local = is_loopback(host) or is_container_host(host)
        if address.scheme == "http" and not is_local and host in HOST_NAMES:
            raise ModelUnavailable(
                f"{host} is not known here as the machine around a container",
                f"start the container with --add-host={host}:host-gateway",
            )
        if address.scheme == "http" and not is_local:
            raise ModelUnavailable(
                f"the server {host} is on another machine and must not be used without encryption",
                "use https in redraft.server.url",
            )
        named = f"[{host}]" if ":" in host else host
        origin = f"{address.scheme}://{named}" + ("" if port is None else f":{port}")
        path = address.path.rstrip("/").removesuffix("/v1")
        return cls(origin, path, is_local)

    @property
    def url(self) -> str:
        """The address as it is shown."""
        return self.origin + self.path


def is_loopback(host: str) -> bool:
    """Return whether a host's name or number stands for this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
