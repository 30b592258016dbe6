"""Prints the demo: ghost text and edits, every token coloured by its source."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from lsp_server.commands.demo.answers import ShownAnswer
from lsp_server.commands.demo.places import TABLE

SOURCE_STYLES: dict[str, str] = TABLE["styles"]
"""Colour of each draft source, in the manner of figure 7 of the FastCoder paper."""


def legend() -> Text:
    """Return the colours and their names."""
    text = Text("text is coloured by where each token was drafted: ")
    for source, style in SOURCE_STYLES.items():
        text.append(source.replace("_", " "), style)
        text.append("  ")
    return text


def spans(answer: dict[str, Any]) -> Text:
    """Return the generated text of an answer, coloured, without the fence after code."""
    text = Text()
    for span in answer["spans"]:
        text.append(span["text"], SOURCE_STYLES[span["source"]])
    while text.plain.endswith(("`", "\n")):
        text.right_crop(1)
    return text


def answer(console: Console, reply: ShownAnswer) -> None:
    """One answer: ghost text after what was typed, or a diff; the tokens by source, both times."""
    console.print()
    console.print(Text(reply.title, "bold"))
    if reply.refusal:
        console.print(Text(f"  {reply.refusal}", "yellow"))
        return
    if reply.diff:
        console.print(Syntax(hunks_of(reply.diff), "diff", background_color="default"))
    if reply.drafted["tokens"]:
        console.print(Padding(Text().append(reply.typed, "dim") + spans(reply.drafted), (0, 2)))
    console.print(Text(f"  {times(reply)}", "dim"))


def hunks_of(diff: str) -> str:
    """Return a unified diff without the names of its files."""
    return "\n".join(line for line in diff.splitlines() if not line.startswith(("--- ", "+++ ")))


def times(reply: ShownAnswer) -> str:
    """Return the time of an answer, and its time without drafts."""
    drafted, plain = reply.drafted, reply.plain
    if not drafted["tokens"]:
        return "known from the syntax tree, no model was asked"
    return (
        f"{drafted['tokens']} tokens in {drafted['forwards']} forwards: "
        f"{drafted['seconds']:.2f} s, {plain['seconds']:.2f} s without drafts"
    )


def summary(name: str, answers: list[ShownAnswer]) -> Table:
    """Return both times of each answer side by side, and of all together."""
    table = Table(title=name, title_justify="left")
    for column in ("", "tokens", "a forward", "drafted", "plain", "times faster"):
        table.add_column(column, justify="right" if column else "left")
    generated = [item for item in answers if item.drafted and item.drafted["tokens"]]
    rows = [(item.title, [item]) for item in generated] + (
        [("all", generated)] if len(generated) > 1 else []
    )
    for title, group in rows:
        tokens, forwards, drafted = (
            sum(item.drafted[what] for item in group) for what in ("tokens", "forwards", "seconds")
        )
        plain = sum(item.plain["seconds"] for item in group)
        table.add_row(
            title,
            str(tokens),
            f"{tokens / max(1, forwards):.1f}",
            f"{drafted:.2f} s",
            f"{plain:.2f} s",
            f"{plain / max(drafted, 1e-9):.1f}",
            style="bold" if title == "all" else "",
        )
    return table
