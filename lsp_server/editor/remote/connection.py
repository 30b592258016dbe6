"""HTTP requests to one server, with its key, its errors and its event streams."""

from __future__ import annotations

import email.utils
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from lsp_server.editor.remote.address import ServerAddress
from lsp_server.editor.remote.context_window import is_about_length
from lsp_server.editor.remote.event_stream import EventTooLong, StreamEvent, events_of
from lsp_server.shared.errors import EngineFailed, ServerRefused, ServerUnavailable
from lsp_server.shared.network import network_remedy

if TYPE_CHECKING:
    import httpx2

CONNECT_S = 5.0
ASK_S = 10.0
"""The longest wait for a short answer."""
SILENCE_S = 60.0
"""A stream of which nothing comes for so long is taken as lost."""
KEEPALIVE_S = 60.0
"""A connection is kept for so long without a request: a new one costs round trips."""
LONGEST_WAIT_S = 600.0
"""A server that asks for a longer wait is asked earlier nevertheless."""
REFUSED_KEY_S = 60.0
"""A refused key is tried again after so long: it may be added there."""
MISS_S = 1.0
"""A server that has too many requests and asks for so long a pause at most misses one request, and
is asked the next one."""
SHOWN_CHARACTERS = 200
SET_KEY = (
    "set the key: redraft.server.key, REDRAFT_SERVER_KEY in the environment, or in VS Code the "
    "command Redraft: Set Server Key"
)


class ServerConnection:
    """Connections to one origin, kept open. The key goes to that origin and to no other: no
    redirect is followed."""

    def __init__(self, address: ServerAddress, key: str) -> None:
        """Raise ServerUnavailable for a proxy or certificates that cannot be used."""
        # Imported here: a daemon without a server does without it.
        import httpx2

        self.address = address
        self._key = key
        self._patience = httpx2.Timeout(SILENCE_S, connect=CONNECT_S)
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        try:
            self._client = httpx2.AsyncClient(
                base_url=address.url,
                headers=headers,
                follow_redirects=False,
                # Without https there is nothing to verify, and no certificates are read.
                verify=address.origin.startswith("https:") and httpx2.create_ssl_context(),
                # A proxy of the environment is for other machines.
                trust_env=not address.is_local,
                timeout=httpx2.Timeout(ASK_S, connect=CONNECT_S),
                limits=httpx2.Limits(keepalive_expiry=KEEPALIVE_S),
            )
        except (OSError, ValueError, ImportError, httpx2.InvalidURL) as error:
            raise self.lost(error) from None

    async def get(self, path: str) -> Any:
        """Return the JSON of an answer; None where the server knows no such path. Raises
        ServerUnavailable."""
        response = await self._answer("GET", path)
        if response.status_code in (400, 404, 405, 501):
            return None
        await self._check(response)
        try:
            return response.json()
        except ValueError:
            return None

    async def optional_json(self, path: str, body: dict[str, Any] | None = None) -> Any:
        """Ask for JSON that a server may have; None without it."""
        import httpx2

        method = "GET" if body is None else "POST"
        try:
            response = await self._client.request(method, path, json=body)
            return response.json() if response.status_code == 200 else None
        except (httpx2.HTTPError, ValueError):
            return None

    async def post(self, path: str, body: dict[str, Any]) -> None:
        """Ask for something that has no answer. Raises as ``events`` does."""
        await self._check(await self._answer("POST", path, json=body, timeout=self._patience))

    @asynccontextmanager
    async def events(
        self, path: str, body: dict[str, Any]
    ) -> AsyncIterator[AsyncIterator[StreamEvent]]:
        """The server-sent events that answer ``body``. Leaving the context closes the connection,
        which ends the work at the server.

        Raises ServerUnavailable, or ServerRefused where the server refuses this request alone.
        """
        import httpx2

        try:
            response = await self._opened(path, body)
            try:
                await self._check(response)
                yield events_of(response.aiter_bytes())
            finally:
                await response.aclose()
        except httpx2.HTTPError as error:
            raise self.lost(error) from None
        except EventTooLong:
            raise EngineFailed("the server sent an event that is too long") from None

    async def _opened(self, path: str, body: dict[str, Any]) -> httpx2.Response:
        """Return the head of a streamed answer. A connection that was kept may have been closed
        there meanwhile, and a replica may have died: then it is asked once more."""
        import httpx2

        headers = {"Accept": "text/event-stream"}
        broken = httpx2.RemoteProtocolError, httpx2.ReadError, httpx2.WriteError
        for is_last in (False, True):
            request = self._client.build_request(
                "POST", path, json=body, headers=headers, timeout=self._patience
            )
            try:
                return await self._client.send(request, stream=True)
            except broken:
                if is_last:
                    raise
        raise AssertionError("the last try returns or raises")

    async def _answer(self, method: str, path: str, **options: Any) -> httpx2.Response:
        import httpx2

        try:
            return await self._client.request(method, path, **options)
        except httpx2.HTTPError as error:
            raise self.lost(error) from None

    async def _check(self, response: httpx2.Response) -> None:
        status = response.status_code
        if status == 200:
            return
        where, retry = self.address.url, _retry_after_s(response)
        if status in (401, 403):
            cause = "does not take the key" if self._key else "asks for a key"
            raise ServerUnavailable(f"the server {where} {cause}", SET_KEY, retry or REFUSED_KEY_S)
        if status == 429 and 0 < retry <= MISS_S:
            raise self.refused("has too many requests (429); try again in a moment", "", "429")
        if status == 429:
            cause = f"the server {where} has had too many requests of this key (429)"
            raise ServerUnavailable(cause, "wait a moment", retry)
        if 300 <= status < 400:
            cause = f"the server {where} sends to another address, which is not followed"
            raise ServerUnavailable(cause, "set redraft.server.url to the address itself", retry)
        details = await self._error_details(response)
        if status >= 500 and status != 501 and not is_about_length(details):
            cause = f"the server {where} fails ({status})"
            raise ServerUnavailable(cause, "tell the people who run it", retry)
        raise self.refused(f"refuses ({status})", details, str(status))

    async def _error_details(self, response: httpx2.Response) -> str:
        await response.aread()
        try:
            return error_details(response.json())
        except ValueError:
            return ""

    def refused(self, what: str, details: str, kind: str) -> ServerRefused:
        """Return what a server says of one request as our error."""
        if self._key:
            details = details.replace(self._key, "…")
        reason = f": {details[:SHOWN_CHARACTERS]}" if details else ""
        return ServerRefused(f"the server {self.address.url} {what}{reason}", kind, details)

    def lost(self, error: Exception) -> ServerUnavailable:
        """Return a connection that failed as our error."""
        where = self.address.url
        why = " ".join(str(error).split())[:SHOWN_CHARACTERS] or type(error).__name__
        remedy = network_remedy(error, where)
        return ServerUnavailable(f"the server {where} cannot be reached ({why})", remedy)

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()


def error_details(error: Any) -> str:
    """Return the message in what servers send for an error."""
    for name in ("error", "detail", "message", "msg"):
        while isinstance(error, list) and error:
            error = error[0]
        if isinstance(error, dict) and error.get(name):
            error = error[name]
    return " ".join(error.split()) if isinstance(error, str) else ""


def _retry_after_s(response: httpx2.Response) -> float:
    """Return seconds that a server wants to be left alone (RFC 9110, 10.2.3), or 0."""
    value = response.headers.get("Retry-After", "").strip()
    if not value:
        return 0.0
    if value.isdecimal():
        wait_s = float(value)
    else:
        parsed = email.utils.parsedate_tz(value)
        wait_s = email.utils.mktime_tz(parsed) - time.time() if parsed is not None else 0.0
    return min(max(wait_s, 0.0), LONGEST_WAIT_S)
