"""As many texts as fit into a number of bytes."""

from __future__ import annotations

from collections.abc import Iterable

from lsp_server.shared.contract.jobs import ContextSnippet


def fitting_snippets(most: int, snippets: Iterable[ContextSnippet]) -> list[ContextSnippet]:
    """Return the first of ``snippets`` whose texts have ``most`` bytes of UTF-8, each path once."""
    chosen = {snippet.path: snippet for snippet in snippets if snippet.text}
    fitting = fitting_texts(most, [snippet.text for snippet in chosen.values()])
    return list(chosen.values())[: len(fitting)]


def fitting_texts(most: int, texts: Iterable[str]) -> list[str]:
    """Return the first of ``texts`` that have ``most`` bytes of UTF-8, each with a line end."""
    fitting = []
    for text in texts:
        most -= len(text.encode("utf-8", "replace")) + 1
        if most < 0:
            break
        fitting.append(text)
    return fitting
