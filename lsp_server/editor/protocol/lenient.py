"""Parameters as clients send them: what they leave out gets a default, and what cannot be read of
their capabilities is left out. Standard library only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_OPENED = {"languageId": "plaintext", "version": 0}
_CHANGED: dict[str, Any] = {"textDocument": {"version": 0}}
_DEFAULTS: dict[str, dict[str, Any]] = {
    "initialize": {"capabilities": {}},
    "textDocument/didOpen": {"textDocument": _OPENED},
    "textDocument/didChange": _CHANGED,
    "textDocument/inlineCompletion": {"context": {"triggerKind": 2}},
    "textDocument/codeAction": {"context": {"diagnostics": []}},
}
_OPTIONAL = ("capabilities", "clientInfo", "workspaceFolders", "trace", "context")
"""Parameters that change no text: such a part may be left out."""


def fill_in(method: Any, params: Any) -> None:
    """Give missing or null ``params`` of ``method`` their defaults. lsp-mode 10 announces inline
    completion by a null, which counts as an object."""
    _fill_in(params, _DEFAULTS.get(str(method), {}))
    if method == "initialize":
        for name in ("capabilities", "textDocument"):
            params = params.get(name) if isinstance(params, dict) else None
        if isinstance(params, dict) and params.get("inlineCompletion", 0) is None:
            params["inlineCompletion"] = {}


def _fill_in(values: Any, defaults: dict[str, Any]) -> None:
    if not isinstance(values, dict):
        return
    for name, default in defaults.items():
        if values.get(name) is None:
            values[name] = {} if isinstance(default, dict) else default
        if isinstance(default, dict):
            _fill_in(values[name], default)


def readable_params(params: Any, is_readable: Callable[[Any], bool]) -> Any:
    """Return ``params`` without what is not readable of the optional ones."""
    if not isinstance(params, dict):
        return params
    usable = {name: value for name, value in params.items() if name not in _OPTIONAL}
    usable |= {"capabilities": {}} if "capabilities" in params else {}
    return _added(usable, {name: params[name] for name in _OPTIONAL if name in params}, is_readable)


def _added(usable: Any, values: dict[str, Any], is_readable: Callable[[Any], bool]) -> Any:
    """Return ``usable`` with each of ``values``, or as much of an object as is readable there."""
    for name, value in values.items():
        if is_readable({**usable, name: value}):
            usable = {**usable, name: value}
        elif isinstance(value, dict):

            def fits(inner: Any, name: str = name, usable: Any = usable) -> bool:
                return is_readable({**usable, name: inner})

            if fits(inner := _added({}, value, fits)):
                usable = {**usable, name: inner}
    return usable
