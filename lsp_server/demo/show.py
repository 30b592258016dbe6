"""What the demo prints: ghost text and edits, every token coloured by where it came from."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.panel import Panel
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

SOURCE_STYLES = {
    "model": "bold white",
    "prompt": "green",
    "suffix": "bright_green",
    "buffer": "bright_cyan",
    "repository": "cyan",
    "common": "blue",
    "history": "magenta",
    "original": "yellow",
    "draft_model": "red",
    "adaptive": "bright_magenta",
}
"""Colour of each draft source, in the manner of figure 7 of the FastCoder paper."""


def legend() -> Text:
    """The colours and their names."""
    text = Text("text is coloured by where each token was drafted: ")
    for source, style in SOURCE_STYLES.items():
        text.append(source.replace("_", " "), style)
        text.append("  ")
    return text


def spans(answer: dict[str, Any]) -> Text:
    """The generated text of an answer, coloured."""
    text = Text()
    for span in answer["spans"]:
        text.append(span["text"], SOURCE_STYLES[span["source"]])
    return text


def completion(console: Console, title: str, typed: str, answer: dict[str, Any]) -> None:
    """The typed line with its ghost text."""
    console.print(Panel(Text(typed, "dim") + spans(answer), title=title, title_align="left"))


def edit(console: Console, title: str, diff: str, answer: dict[str, Any]) -> None:
    """An edit: the text by source, and the diff that an editor would preview."""
    written = spans(answer) if answer["tokens"] else Text("known without asking the model", "dim")
    console.print(Panel(written, title=title, title_align="left"))
    if diff:
        console.print(Syntax(diff, "diff", background_color="default"))
    else:
        console.print("[dim]no change[/]")


def costs(rows: list[tuple[str, dict[str, Any], dict[str, Any]]]) -> Table:
    """A table of what each request cost, drafted and plain. Rows: (name, drafted, plain)."""
    table = Table(title="each request, and plain decoding of the same text in the same run")
    columns = ("request", "tokens", "forwards", "tokens/forward", "time", "plain", "ratio")
    for column in columns:
        table.add_column(column, justify="left" if column == "request" else "right")
    for name, drafted, plain in rows:
        table.add_row(
            name,
            str(drafted["tokens"]),
            str(drafted["forwards"]),
            f"{drafted['tokens'] / max(1, drafted['forwards']):.1f}",
            f"{drafted['seconds'] * 1e3:.0f} ms",
            f"{plain['seconds'] * 1e3:.0f} ms",
            f"{plain['seconds'] / drafted['seconds']:.1f}x" if drafted["tokens"] else "-",
        )
    return table
