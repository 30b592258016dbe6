"""Guards every route: key, host, origin and limits."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from lsp_server.team.http_server.errors import RequestRefused
from lsp_server.team.http_server.keys import MOST_KEY_CHARACTERS, Keys
from lsp_server.team.http_server.rate_limits import UsageByKey

_SLASHES = re.compile("/{2,}")
_WITHOUT_VERSION = re.compile("/((chat/)?completions|responses|apply|models(/.*)?)")
"""Paths that are asked where the address of a client lacks ``/v1``."""
HEALTH = "/health"
"""The one path that needs no key."""


class Guard:
    """An ASGI application around another. ``scope["holder"]`` says whose key was given,
    ``scope["connection"]`` where the request came from."""

    def __init__(
        self, inner: ASGIApp, keys: Keys, usage: UsageByKey, host_names: Collection[str] | None
    ) -> None:
        """``host_names``: by which names the server may be called; None: by any."""
        self._inner = inner
        self._keys = keys
        self._usage = usage
        self._host_names = host_names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or refuse it."""
        if scope["type"] != "http" or scope["path"] == HEALTH:
            await self._inner(scope, receive, send)
            return
        try:
            headers = Headers(scope=scope)
            holder = scope["holder"] = self._holder(headers)
            scope["connection"] = "{}:{}".format(*(scope.get("client") or ("", 0)))
            self._check_origin(headers)
            # An address that ends in a slash makes clients ask for //v1.
            path = _SLASHES.sub("/", scope["path"]).rstrip("/") or "/"
            scope["path"] = f"/v1{path}" if _WITHOUT_VERSION.fullmatch(path) else path
            with self._usage.request(holder):
                await self._inner(scope, receive, send)
        except RequestRefused as refused:
            await refused.response_at(scope["path"])(scope, receive, send)

    def _holder(self, headers: Headers) -> str:
        values = headers.getlist("authorization")
        if not values:
            # As Anthropic's clients and some gateways send it.
            values = [f"Bearer {key}" for key in headers.getlist("x-api-key")]
        kind, _, key = values[0].strip().partition(" ") if len(values) == 1 else ("", "", "")
        key = key.strip()
        if kind.lower() != "bearer" or not 0 < len(key) <= MOST_KEY_CHARACTERS:
            raise _no_key("a key is needed: Authorization: Bearer KEY, or x-api-key: KEY")
        holder = self._keys.holder(key)
        if holder is None:
            raise _no_key("this key is unknown")
        return holder

    def _check_origin(self, headers: Headers) -> None:
        """Refuse requests of web pages, and names that the server does not have."""
        if "origin" in headers:
            raise _forbidden("requests from web pages are not answered")
        name = host_name(headers.get("host", ""))
        if self._host_names is None or is_address(name) or name in self._host_names:
            return
        raise _forbidden("this is not a name of the server; allow it with --name")


def host_name(host: str) -> str:
    """Return the name in a Host header, without its port."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower().rstrip(".")


def is_address(name: str) -> bool:
    """Return if a host is given by number, or is this machine: no name service can forge those."""
    if name == "localhost":
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _no_key(message: str) -> RequestRefused:
    return RequestRefused(401, message, "invalid_api_key", "authentication_error")


def _forbidden(message: str) -> RequestRefused:
    return RequestRefused(403, message, "forbidden", "permission_error")
