"""The demo's requests to the server: a completion and an edit, with drafts and without."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lsp_server.commands.demo.client import ServerFailed
from lsp_server.commands.demo.places import EditPlace, TypingPlace
from lsp_server.commands.demo.session import EditorSession
from lsp_server.editor.editing.checks import new_problem

ANSWER_S = 120.0


@dataclass(frozen=True, slots=True)
class ShownAnswer:
    """An answer with drafts, and the same one without."""

    title: str
    drafted: dict[str, Any]
    plain: dict[str, Any]
    text: str
    """The document with the answer in it."""
    diff: str = ""
    typed: str = ""
    refusal: str = ""


def answer_at(session: EditorSession, place: TypingPlace | EditPlace) -> ShownAnswer:
    """Return the completion or the edit of ``place``. Raises ServerFailed."""
    return edit(session, place) if isinstance(place, EditPlace) else complete(session, place)


def complete(session: EditorSession, place: TypingPlace) -> ShownAnswer:
    """Return type key by key as a person does, ask as an editor does, then where it is from."""
    document = session.open(place.path, place.before + "\n" + place.after)
    cursor = len(place.before)
    for character in place.typed:
        document.insert(cursor, character)
        cursor += 1
    items = (document.ask(cursor, 1)[1].result(ANSWER_S) or {}).get("items")
    drafted, plain = document.explain(cursor), document.explain(cursor, plain=True)
    document.close()
    ghost = items[0]["insertText"] if items else ""
    return ShownAnswer(
        f"{place.path.name}:{place.before.count(chr(10)) + 1}",
        drafted,
        plain,
        place.before + place.typed + ghost + "\n" + place.after,
        typed=place.typed,
        refusal="" if items else "nothing is suggested here",
    )


def edit(session: EditorSession, place: EditPlace) -> ShownAnswer:
    """Edit lines by an instruction. What the server refuses comes with its reason."""
    document = session.open(place.path, place.text)
    lines = place.first_line, place.end_line
    title = f"{place.path.name}:{place.first_line + 1}, {place.instruction}"
    try:
        answer = document.edited(lines, place.instruction)
        plain = document.edited(lines, place.instruction, plain=True)
    except ServerFailed as refusal:
        return ShownAnswer(title, {}, {}, place.text, refusal=str(refusal))
    finally:
        document.close()
    every = place.text.splitlines(keepends=True)
    above, selection, below = ("".join(every[part]) for part in _parts(*lines))
    if problem := new_problem(selection, answer["text"] + "\n", "python"):
        why = f"the model's answer does not parse ({problem})"
        return ShownAnswer(title, {}, {}, place.text, refusal=why)
    text = f"{above}{answer['text']}\n{below}"
    return ShownAnswer(title, answer["statistics"], plain["statistics"], text, answer["diff"])


def _parts(first: int, end: int) -> tuple[slice, slice, slice]:
    return slice(0, first), slice(first, end), slice(end, None)
