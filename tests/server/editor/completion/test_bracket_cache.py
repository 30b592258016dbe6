"""Syntax of documents: at once where they are short, beside the event loop where they are long."""

from __future__ import annotations

import asyncio

from lsp_server.editor.completion.request import CompletionRequest
from lsp_server.editor.completion.unmatched_brackets import (
    DOCUMENTS,
    PARSED_AT_ONCE,
    DocumentBrackets,
)


def ask(document: str, language: str, prefix: str) -> CompletionRequest:
    return CompletionRequest(document, document, "", language, prefix, "\n")


def test_a_short_document_is_parsed_at_once_and_kept() -> None:
    brackets = DocumentBrackets()
    first = brackets.syntax_of(ask("a.py", "python", "f("))
    assert first is not None
    assert brackets.syntax_of(ask("a.py", "python", "f(a")) is first
    assert brackets.syntax_of(ask("a.py", "javascript", "f(")) is not first
    brackets.forget("a.py")
    assert brackets.syntax_of(ask("a.py", "python", "f(")) is not first


def test_the_path_tells_where_the_language_id_does_not() -> None:
    brackets = DocumentBrackets()
    assert brackets.syntax_of(ask("a.py", "plaintext", "f(")) is not None
    assert brackets.syntax_of(ask("a", "plaintext", "f(")) is None


async def test_a_long_document_is_parsed_beside_the_event_loop() -> None:
    brackets = DocumentBrackets()
    long = ask("a.py", "python", "f(a)\n" * (PARSED_AT_ONCE // 4))
    assert brackets.syntax_of(long) is None
    for _ in range(1000):
        if brackets.syntax_of(long) is not None:
            break
        await asyncio.sleep(0.01)
    syntax = brackets.syntax_of(long)
    assert syntax is not None
    around = syntax.around(long.prefix + "g(\n", len(long.prefix), len(long.prefix) + 2)
    assert around is not None
    assert [bracket.sign for bracket in around.inside] == ["("]


async def test_a_document_that_was_closed_meanwhile_stays_forgotten() -> None:
    brackets = DocumentBrackets()
    long = ask("a.py", "python", "f(a)\n" * PARSED_AT_ONCE)
    assert brackets.syntax_of(long) is None
    brackets.forget("a.py")
    await asyncio.get_running_loop().shutdown_default_executor()
    await asyncio.sleep(0)
    assert brackets._brackets == {}


def test_only_so_many_documents_are_kept() -> None:
    brackets = DocumentBrackets()
    first = brackets.syntax_of(ask("first.py", "python", ""))
    for number in range(DOCUMENTS):
        brackets.syntax_of(ask(f"{number}.py", "python", ""))
    assert len(brackets._brackets) == DOCUMENTS
    assert brackets.syntax_of(ask("first.py", "python", "")) is not first
