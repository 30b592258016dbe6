"""``tests.benchmarks typing``: a person types a real file through the real front and daemon.

At several places of the file the rest of a function is taken out and typed again, key by key, with
pauses as at 40 to 120 words a minute. After every key the editor tells the change, cancels its last
request and asks anew, as VS Code does. A request is *along* when what was shown before it fits what
is being typed; those should cost no model time. The first request at a place has no KV cache and is
counted apart (*cold*). *Fresh* ones are waited for however long they take, every few keys, with the
KV cache of the one before. Times are taken at the client unless they are named otherwise.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from pathlib import Path
from typing import Any

from lsp_server.commands.cli.output import add_json_argument, write_json
from lsp_server.shared.errors import RedraftError
from tests.benchmarks.keystrokes.client import PrivateDaemon
from tests.benchmarks.keystrokes.person import MeasuredTypist
from tests.benchmarks.keystrokes.processes import long_file_figures, process_figures, soak
from tests.benchmarks.keystrokes.processor_time import processor_seconds
from tests.benchmarks.keystrokes.typist import (
    TypedPassage,
    add_typing_arguments,
    percentile,
    typing_figures,
    typing_places,
)

CANCELS = 60
WORDS = 40

GOALS = {
    "answered_without_model": ">= 0.5",
    "without_model_ms_p95": "<= 15",
    "fresh_ms_p50": "<= 250",
    "fresh_ms_p95": "<= 600",
    "cancel_beyond_forward_ms_p95": "<= 5",
    "did_change_ms_p95": "<= 2",
    "long_file_did_change_ms_p95": "<= 2",
    "loop_blocked_ms_p999": "<= 20",
    "loop_blocked_ms_max": "<= 100",
    "drafts_in_word_to_start": "0.8 to 1.2",
    "initialized_ms_p50": "<= 300",
    "second_client_mb": "<= 30",
    "idle_cpu_percent": "about 0",
    "errors": "0",
    "soak_errors": "0",
    "soak_growth_percent": "about 0",
}
"""What is to be reached on two quiet cores with a model of nine million parameters."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the bench."""
    parser.add_argument("--file", type=Path, required=True, help="Python file to type")
    parser.add_argument("--model", help="folder, GGUF file or id; else the chosen model")
    add_typing_arguments(parser)
    parser.add_argument(
        "--processor-time",
        action="store_true",
        help="only processor seconds for a minute of typing, by turns with suggestions off",
    )
    parser.add_argument("--program", type=Path, help="and with this redraft of another version")
    parser.add_argument("--clients", type=int, default=1, help="type with so many at the end")
    parser.add_argument("--minutes", type=float, default=10.0, help="for so long (default 10)")
    add_json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Type, measure, print. Raises RedraftError for a file without functions."""
    text = args.file.read_text(encoding="utf-8")
    places = typing_places(text, args.places)
    if not places:
        raise RedraftError(f"{args.file} has no functions to type; give a longer Python file")
    if args.processor_time:
        workspace = args.file.resolve().parent
        for name, seconds in processor_seconds(
            args.model, workspace, places, args.words, args.program
        ).items():
            print(f"{name:8} {seconds:6.2f} processor seconds a minute of typing")
        return 0
    with tempfile.TemporaryDirectory(prefix="redraft-typing-") as folder:
        workspace = args.file.resolve().parent
        daemon = PrivateDaemon(Path(folder), workspace, args.model, measured=True)
        try:
            result = _figures(daemon, text, places, args)
        finally:
            daemon.stop()
    if args.json:
        write_json(args.json, result)
    else:
        for name, value in result.items():
            print(f"{name:32} {value!s:24} {GOALS.get(name, '')}".rstrip())
    return 0


def _figures(
    daemon: PrivateDaemon, text: str, places: list[TypedPassage], args: argparse.Namespace
) -> dict[str, Any]:
    client = daemon.connect()
    client.measurements()
    uri = args.file.resolve().as_uri()
    typist = MeasuredTypist(client.client, uri, random.Random(args.seed), args.words)
    typist.type_file(places, args.keys)
    typist.cancel_at(places, CANCELS)
    words = typist.explain_words(text, WORDS)
    measured = client.measurements()
    client.watch_no_more()
    result = {
        **typing_figures(typist.tally, measured),
        **cancel_figures(measured),
        **word_figures(words),
        **long_file_figures(daemon, text, args.seed),
        **process_figures(daemon),
    }
    client.close()
    if args.clients > 1:
        result |= soak(daemon, places, args.clients, args.minutes, args.seed)
    return {
        **result,
        "file": args.file.name,
        "keys": args.keys,
        "words_per_minute": args.words,
        "seed": args.seed,
    }


def cancel_figures(measured: dict[str, Any]) -> dict[str, Any]:
    """How long cancelled requests took, in all and beyond the forward that they met."""
    cancels, forwards = measured["cancels"], measured["cancelForwards"]
    beyond = [whole - forward for whole, forward in zip(cancels, forwards, strict=True)]
    return {
        "cancels": len(cancels),
        "cancel_ms_p95": percentile([1000 * one for one in cancels], 95),
        "cancel_forward_ms_p95": percentile([1000 * one for one in forwards], 95),
        "cancel_beyond_forward_ms_p95": percentile([1000 * one for one in beyond], 95),
    }


def word_figures(pairs: list[tuple[dict[str, Any], dict[str, Any]]]) -> dict[str, Any]:
    """How often drafts brought text at the start of words and in the middle of the same words."""
    start, middle = ([pair[place] for pair in pairs] for place in (0, 1))
    found = [_share_drafted(one) for one in (start, middle)]
    return {
        "words": len(pairs),
        "drafts_at_word_start": round(found[0], 3),
        "drafts_in_word": round(found[1], 3),
        "drafts_in_word_to_start": round(found[1] / found[0], 2) if found[0] else None,
        "tokens_per_forward_at_word_start": _per_forward(start),
        "tokens_per_forward_in_word": _per_forward(middle),
    }


def _share_drafted(answers: list[dict[str, Any]]) -> float:
    drafted = [any(span["source"] != "model" for span in one["spans"]) for one in answers]
    return sum(drafted) / max(1, len(drafted))


def _per_forward(answers: list[dict[str, Any]]) -> float:
    forwards = sum(one["forwards"] for one in answers)
    return round(sum(one["tokens"] for one in answers) / max(1, forwards), 2)
