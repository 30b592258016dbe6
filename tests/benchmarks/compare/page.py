"""The page of ``tests.benchmarks compare`` in Markdown."""

from __future__ import annotations

from typing import Any

Document = dict[str, Any]

NOT_MEANT = {
    "completion": {
        "fastfixer": "drafts from the code to be edited, and completion has none",
        "efficientedit": "reuses the code to be edited, and completion has none",
    },
    "edit": {},
}
"""By bench: methods without a figure there, and why."""
PAIRS = 1.05
"""Time against plain decoding that drafts may take."""


def written(documents: dict[str, Document], rows: list[str], *, pairs: bool = False) -> str:
    """The page: tokens per forward, tokens per second, and what was checked.

    ``documents`` are those of the benches by heading. ``pairs``: each cell gives the time against
    plain decoding in pairs, too.
    """
    table = [
        "| tokens/forward · tokens/s (× fastest plain) | " + " | ".join(documents) + " |",
        "| --- |" + " ---: |" * len(documents),
    ]
    for row in rows:
        cells = [_cell(row, document, pairs=pairs) for document in documents.values()]
        table.append(f"| {row} | " + " | ".join(cells) + " |")
    notes = [f"{heading}: {_told(document)}" for heading, document in documents.items()]
    if pairs:
        notes.insert(
            0,
            f"time: the median over pairs of the same case, of a method's time per token over that "
            f"of plain decoding in the same dtype; at most {PAIRS} is wanted.",
        )
    notes += _absences(documents, rows)
    return "\n\n".join(["\n".join(table), *notes]) + "\n"


def _cell(row: str, document: Document, *, pairs: bool) -> str:
    if "failed" in document:
        return "failed"
    fields = document["methods"].get(row)
    if fields is None:
        return "does not apply"
    if "unavailable" in fields:
        return "not here"
    cell = f"{fields['tokens_per_forward']:.2f} · {fields['tokens_per_s']:.0f}"
    cell += f" ({fields['speedup']:.2f} ×)"
    if pairs:
        cell += f", time {fields['pair_ratio']:.3f}"
    same, cases = fields["identical"], fields["cases"]
    return cell if same in (None, cases) else f"{cell}, {same} of {cases} texts as plain"


def _told(document: Document) -> str:
    """One line on what a column was measured on."""
    if "failed" in document:
        return f"failed, {document['failed']}."
    plain = document["methods"]["plain"]
    fastest = document["fastest_plain"]
    speed = document["plain_decoding"][fastest]["tokens_per_s"]
    repeated = 100 * plain["repeated_16grams"]
    return (
        f"{plain['cases']} cases of `{document['cases_file']}`, {_length(document['options'])}, "
        f"{plain['tokens']} tokens ({repeated:.0f} % of the 16-grams repeated); model "
        f"{document['model']} in {document['dtype']}{_transformers(document)}; fastest plain "
        f"decoding {speed:.0f} tokens/s ({fastest})."
        f"{_best_peer(document)}{_hardly_repeated(document)}"
    )


def _length(options: dict[str, Any]) -> str:
    """To where the texts go, and from what."""
    side = "from the left alone, " if options.get("left_only") else ""
    if options.get("stop") == "reference":
        return f"{side}to the reference's length"
    if options.get("stop") is None:
        return f"{side}to the model's end"
    return f"{side}at most {options['max_tokens']} tokens"


def _transformers(document: Document) -> str:
    setting = document.get("transformers", {})
    if setting.get("threads") is None:
        return ""
    return (
        f" (threads: {document['threads']}), transformers' methods in {setting['dtype']} "
        f"(threads: {setting['threads']})"
    )


def _best_peer(document: Document) -> str:
    ours = document["methods"].get("redraft", {})
    if "over_best_peer" not in ours:
        return ""
    return f" redraft is {ours['over_best_peer']:.2f} × {document['best_peer']}, the best peer."


def _hardly_repeated(document: Document) -> str:
    part = document.get("hardly_repeated", {})
    ours = part.get("methods", {}).get("redraft")
    if ours is None:
        return ""
    return (
        f" On the {part['cases']} texts with at most 20 % repeated 16-grams redraft has "
        f"{ours['tokens_per_forward']:.2f} tokens/forward and is {ours['speedup']:.2f} × the "
        "fastest plain decoding."
    )


def _absences(documents: dict[str, Document], rows: list[str]) -> list[str]:
    """Why rows have no figures, each reason once."""
    reasons: dict[tuple[str, str], None] = {}
    for row in rows:
        for document in documents.values():
            if "failed" in document:
                continue
            fields = document["methods"].get(row)
            if fields is None:
                why = NOT_MEANT[document["bench"]].get(row, "no bench knows this method")
                reasons[row, f"does not apply to {document['bench']}: {why}"] = None
            elif "unavailable" in fields:
                reasons[row, f"not here: {fields['unavailable']}"] = None
    return [f"{row} {why}." for row, why in reasons]
