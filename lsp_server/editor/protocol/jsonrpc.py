"""One editor's JSON-RPC: pygls dispatches to handlers, and this file does what pygls lacks.

pygls 2.1.1 never answers a request whose parameters it cannot read, lets a stray response finish a
running request, keeps futures of finished handlers and puts tracebacks into answers.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from functools import partial
from typing import Any

from cattrs import Converter
from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.protocol import (
    JsonRPCNotification,
    JsonRPCRequestMessage,
    LanguageServerProtocol,
    default_converter,
)

from lsp_server.editor.protocol.lenient import fill_in, readable_params
from lsp_server.shared.errors import ProtocolError, RedraftError, StaleDocument
from lsp_server.shared.processes.framing import lsp_message

logger = logging.getLogger(__name__)

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
NOT_INITIALIZED = -32002
REQUEST_CANCELLED = -32800
CONTENT_MODIFIED = -32801
REQUEST_FAILED = -32803

# Their pygls forms would keep a second copy of every document, leak a future for each call, or
# end the process that other editors share.
_OWN_HANDLERS = (
    *(types.INITIALIZE, types.INITIALIZED, types.SHUTDOWN, types.EXIT, types.SET_TRACE),
    *(types.TEXT_DOCUMENT_DID_OPEN, types.TEXT_DOCUMENT_DID_CHANGE, types.TEXT_DOCUMENT_DID_CLOSE),
    *(types.NOTEBOOK_DOCUMENT_DID_OPEN, types.NOTEBOOK_DOCUMENT_DID_CHANGE),
    *(types.NOTEBOOK_DOCUMENT_DID_CLOSE, types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS),
    *(types.WORKSPACE_EXECUTE_COMMAND, types.WINDOW_WORK_DONE_PROGRESS_CANCEL),
)


def _trigger_kind(value: Any, _: Any) -> types.InlineCompletionTriggerKind:
    # vscode-languageclient 9 counts from 0; a refused value would leave the request unanswered.
    try:
        return types.InlineCompletionTriggerKind(value)
    except ValueError:
        return types.InlineCompletionTriggerKind.Invoked


def _plain(kind: type[Any]) -> Callable[[Any, Any], Any]:
    """Return a hook for messages of methods outside LSP: the parameters stay plain JSON."""
    names = [name for name in ("id", "method", "jsonrpc", "params") if name in kind.__annotations__]
    return lambda data, _: kind(**{name: data.get(name) for name in names})


def make_converter() -> Converter:
    """Return the converter between JSON and lsprotocol's types, made once for all connections."""
    converter = default_converter()
    converter.register_structure_hook(types.InlineCompletionTriggerKind, _trigger_kind)
    for kind in (JsonRPCRequestMessage, JsonRPCNotification):
        converter.register_structure_hook(kind, _plain(kind))
    return converter


class RedraftProtocol(LanguageServerProtocol):
    """Reads one message after another and answers every request exactly once."""

    def __init__(self, server: Any, converter: Converter) -> None:
        super().__init__(server, converter)
        for method in _OWN_HANDLERS:
            self.fm.builtin_features.pop(method, None)
        self.initialized = False
        self.shut_down = False
        self._pending_requests: dict[str, asyncio.Future[Any]] = {}
        self._request_count = 0

    def add_handler(self, method: str, handler: Callable[..., Any]) -> None:
        """Have ``handler(server, params)`` answer a method."""
        self.fm.features[method] = _bound(handler, self._server)

    # Messages of the client

    def receive(self, body: bytes) -> None:
        """Handle one message body. Never raises."""
        try:
            message = json.loads(body)
        except (ValueError, RecursionError) as error:
            self.refuse(None, PARSE_ERROR, f"not JSON: {_one_line(error)}")
            return
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            self.refuse(None, INVALID_REQUEST, "not a JSON-RPC 2.0 message")
        elif "method" not in message:
            self._receive_response(message)
        elif self._may_come_now(message):
            self._dispatch(message)

    def reject(self, error: ProtocolError) -> None:
        """Bytes came that are no message."""
        logger.warning("bad message: %s", error)
        self.refuse(None, error.code, str(error))

    def refuse(self, msg_id: Any, code: int, text: str) -> None:
        """Answer a request, or a message that has no usable id, with an error."""
        self._send_json({"id": msg_id, "error": {"code": code, "message": text}})

    def _may_come_now(self, message: dict[str, Any]) -> bool:
        """Return True if the method is allowed in this state; other requests are refused."""
        method, msg_id = message["method"], message.get("id")
        has_id = "id" in message
        if not isinstance(method, str) or (has_id and not isinstance(msg_id, (str, int))):
            self.refuse(None, INVALID_REQUEST, "method must be a string, id a string or a number")
            return False
        if method == types.EXIT:
            return True
        if self.shut_down or not (self.initialized or method == types.INITIALIZE):
            if has_id:
                code = INVALID_REQUEST if self.shut_down else NOT_INITIALIZED
                self.refuse(msg_id, code, "shut down" if self.shut_down else "not initialized")
            return False
        if self.initialized and method == types.INITIALIZE:
            self.refuse(msg_id, INVALID_REQUEST, "initialize was sent twice")
            return False
        return True

    def _dispatch(self, message: dict[str, Any]) -> None:
        try:
            self.handle_message(self._structured(message))
        except Exception as error:
            method = str(message["method"])[:80]
            if not isinstance(error, JsonRpcException):
                logger.exception("failed to handle %s", method)
            else:
                logger.warning("bad parameters of %s", method)
            if "id" in message:
                self.refuse(message["id"], INVALID_PARAMS, f"bad parameters of {method}")

    def _structured(self, message: dict[str, Any]) -> Any:
        """Return ``message`` as a type of lsprotocol. Raises JsonRpcException."""
        method, params = message["method"], message.get("params")
        fill_in(method, params)
        try:
            return self.structure_message(message)
        except JsonRpcException:
            readable = readable_params(params, partial(self._is_readable, message))
            fill_in(method, readable)
            return self.structure_message({**message, "params": readable})

    def _is_readable(self, message: dict[str, Any], params: Any) -> bool:
        kind = self.get_message_type(message["method"])
        try:
            if kind is not None:
                self._converter.structure({**message, "params": params}, kind)
        except Exception:
            return False
        return True

    def _receive_response(self, message: dict[str, Any]) -> None:
        future = self._pending_requests.pop(str(message.get("id")), None)
        if future is None or future.done():
            return
        if "error" in message:
            error = message["error"]
            text = error.get("message", "") if isinstance(error, dict) else str(error)
            future.set_exception(RedraftError(f"the editor refused: {text}"))
        else:
            future.set_result(message.get("result"))

    # Handlers

    def _execute_handler(
        self,
        msg_id: Any,
        handler: Any,
        callback: Any,
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
    ) -> None:
        super()._execute_handler(msg_id, handler, callback, args, kwargs)
        future = self._request_futures.get(msg_id)
        if future is not None:
            future.add_done_callback(partial(self._forget, msg_id))

    def _forget(self, msg_id: Any, future: Any) -> None:
        if self._request_futures.get(msg_id) is future:
            del self._request_futures[msg_id]

    def _handle_cancel_notification(self, msg_id: Any) -> None:
        future = self._request_futures.get(msg_id)
        if future is not None:
            future.cancel()

    def _send_handler_result(self, future: Any, *, msg_id: Any) -> None:
        if future.cancelled():
            self.refuse(msg_id, REQUEST_CANCELLED, "cancelled")
            return
        error = future.exception()
        if error is None:
            self._send_response(msg_id, result=future.result())
        elif isinstance(error, RedraftError):
            code = CONTENT_MODIFIED if isinstance(error, StaleDocument) else REQUEST_FAILED
            logger.info("request refused: %s", type(error).__name__ if error.private else error)
            self.refuse(msg_id, code, _one_line(error))
        elif isinstance(error, JsonRpcException):
            self.refuse(msg_id, error.code or INTERNAL_ERROR, _one_line(error))
        else:
            logger.error("request failed", exc_info=error)
            self.refuse(msg_id, INTERNAL_ERROR, f"internal error ({type(error).__name__}); see log")

    def _check_handler_result(self, future: Any) -> None:
        if future.cancelled() or (error := future.exception()) is None:
            return
        if isinstance(error, RedraftError):
            logger.info("notification ignored: %s", error)
        else:
            logger.error("notification failed", exc_info=error)

    def cancel_all(self) -> None:
        """Stop every handler that still runs: the client has gone."""
        for future in list(self._request_futures.values()):
            future.cancel()
        for pending in self._pending_requests.values():
            pending.cancel()

    # Messages to the client

    def tell(self, method: str, params: Any) -> None:
        """Send a notification; ``params`` is JSON or a type of lsprotocol."""
        self._send_json({"method": method, "params": params})

    def ask(self, method: str, params: Any) -> asyncio.Future[Any]:
        """Send a request; the future holds the result as plain JSON."""
        self._request_count += 1
        msg_id = f"redraft-{self._request_count}"
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._pending_requests[msg_id] = future
        self._send_json({"id": msg_id, "method": method, "params": params})
        return future

    def _send_json(self, message: dict[str, Any]) -> None:
        self._send_data({"jsonrpc": "2.0", **message})

    def _send_data(self, data: Any) -> None:
        if self.writer is None:
            return
        body = json.dumps(data, default=self._serialize_message, separators=(",", ":"))
        try:
            self.writer.write(lsp_message(body.encode("ascii")))
        except (ConnectionError, RuntimeError) as error:
            logger.info("client is gone: %s", error)


def _bound(handler: Callable[..., Any], server: Any) -> Callable[..., Any]:
    """``handler`` with its server; a coroutine function stays one, as pygls looks for that."""
    if asyncio.iscoroutinefunction(handler):

        async def asynchronous(params: Any = None) -> Any:
            return await handler(server, params)

        return asynchronous
    return partial(handler, server)


def _one_line(error: BaseException) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text[:300]
