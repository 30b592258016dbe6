"""What one method cost on one case, and sums of many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from accel.execution.statistics import Statistics

REPETITION = 16
"""Length of the runs of tokens that tell whether a text loops."""
SHORT_REPETITION = 8
"""The same of texts of few tokens."""
MOST_REPEATED = 0.2
"""Share of repeated runs from which on a text says little about drafting: it loops."""


@dataclass(frozen=True, slots=True)
class Projection:
    """Seconds that the forwards of a replay would take on a measured model shape."""

    plain_s: float
    drafted_s: float
    forwards: int
    nodes: int


@dataclass(slots=True)
class Measurement:
    """One method on one case. Times in seconds."""

    method: str
    group: str
    case: str
    statistics: Statistics
    tokens: list[int]
    """Generated tokens, or those of the reference in a replay."""
    text_bytes: int
    """Length of the text that the tokens stand for."""
    wall_s: float
    prompt_s: float = 0.0
    """Time of making the prompts, where that belongs to the method."""
    identical: bool | None = True
    """Same tokens as ``plain``, None where that is not owed."""
    identical_hf: bool | None = None
    """Same tokens as transformers' plain ``generate``, None where that was not run."""
    exact: bool = True
    """The text is the reference."""
    similarity: float = 1.0
    """Edit similarity of text and reference."""
    projection: Projection | None = None
    reuse: float | None = None
    """Of an edit: share of the tokens that stand in the original."""


def summarise(measurements: Sequence[Measurement]) -> dict[str, Any]:
    """One method's figures over its cases, as the bench's JSON has them."""
    statistics = [measurement.statistics for measurement in measurements]
    tokens = sum(each.tokens for each in statistics)
    forwards = sum(each.forwards + each.draft_forwards for each in statistics)
    decode_s = sum(each.decode_s for each in statistics)
    draft_s = [seconds for each in statistics for seconds in each.draft_s]
    verify_s = [seconds for each in statistics for seconds in each.verify_s]
    projections = [each.projection for each in measurements if each.projection is not None]
    return {
        "cases": len(measurements),
        "tokens": tokens,
        "forwards": forwards,
        "tokens_per_forward": _ratio(tokens, forwards),
        "tokens_per_forward_mean": _mean([each.tokens_per_forward for each in statistics]),
        "bytes_per_forward": _ratio(sum(each.text_bytes for each in measurements), forwards),
        "nodes_per_forward": _ratio(sum(each.nodes for each in statistics), forwards),
        "draft_us_p50": _percentile(draft_s, 50) * 1e6,
        "draft_us_p95": _percentile(draft_s, 95) * 1e6,
        "drafting_share": _ratio(sum(draft_s) + sum(each.learn_s for each in statistics), decode_s),
        "verify_ms_p50": _percentile(verify_s, 50) * 1e3,
        "wall_s": sum(each.wall_s for each in measurements),
        "decode_s": decode_s,
        "prefill_s": sum(each.prefill_s for each in statistics),
        "prompt_s": sum(each.prompt_s for each in measurements),
        "tokens_per_s": _ratio(tokens, decode_s),
        "ms_per_token": 1e3 * _ratio(decode_s, tokens),
        "identical": _count([each.identical for each in measurements]),
        "identical_hf": _count([each.identical_hf for each in measurements]),
        "exact": sum(each.exact for each in measurements),
        "edit_similarity": _mean([each.similarity for each in measurements]),
        "repeated_16grams": repeated_share([each.tokens for each in measurements]),
        "sources": _tokens_by_source(statistics),
        **(_projected(projections, tokens) if projections else {}),
    }


def pair_ratio(measured: Sequence[Measurement], plain: Sequence[Measurement]) -> float:
    """Median over pairs of the same case of decoding time per token over that of plain decoding.

    The two run right after one another, so that what else the machine does hits both.
    """
    ratios = [
        _per_token(one.statistics) / _per_token(other.statistics)
        for one, other in zip(measured, plain, strict=True)
        if one.statistics.decode_s and other.statistics.decode_s
    ]
    return float(np.median(ratios)) if ratios else 0.0


def _per_token(statistics: Statistics) -> float:
    return statistics.decode_s / max(statistics.tokens, 1)


def _projected(projections: Sequence[Projection], tokens: int) -> dict[str, Any]:
    forwards = sum(each.forwards for each in projections)
    drafted_s = sum(each.drafted_s for each in projections)
    return {
        "projected_speedup": _ratio(sum(each.plain_s for each in projections), drafted_s),
        "projected_tokens_per_s": _ratio(tokens, drafted_s),
        "projected_tokens_per_forward": _ratio(tokens, forwards),
        "projected_nodes_per_forward": _ratio(sum(each.nodes for each in projections), forwards),
    }


def hardly_repeats(tokens: Sequence[int], length: int = REPETITION) -> bool:
    """Whether a text is none that loops: of its runs of so many tokens at most ``MOST_REPEATED``
    repeat."""
    return repeated_share([tokens], length) <= MOST_REPEATED


def repeated_share(texts: Sequence[Sequence[int]], length: int = REPETITION) -> float:
    """Share of the runs of so many tokens that occurred before in the same text, over all
    ``texts``."""
    repeated = total = 0
    for tokens in texts:
        seen: set[tuple[int, ...]] = set()
        for start in range(len(tokens) - length + 1):
            gram = tuple(tokens[start : start + length])
            repeated += gram in seen
            total += 1
            seen.add(gram)
    return _ratio(repeated, total)


def similarity(text: str, reference: str) -> float:
    """Edit similarity: 1 - Levenshtein distance / length of the longer text, in characters."""
    if not text or not reference:
        return float(text == reference)
    ours = np.frombuffer(text.encode("utf-32-le"), np.uint32)
    theirs = np.frombuffer(reference.encode("utf-32-le"), np.uint32)
    places = np.arange(len(theirs) + 1)
    distances = places.copy()
    for row, character in enumerate(ours, 1):
        substituted = distances[:-1] + (theirs != character)
        best = np.minimum(distances[1:] + 1, substituted)
        # Insertions: every cell may come from a cell to its left, one more for every step.
        distances = np.minimum.accumulate(np.concatenate([[row], best]) - places) + places
    return 1.0 - float(distances[-1]) / max(len(ours), len(theirs))


def _count(flags: Sequence[bool | None]) -> int | None:
    """How many are true; None where none says anything."""
    told = [flag for flag in flags if flag is not None]
    return sum(told) if told else None


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else 0.0


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def _percentile(values: list[float], percentile: float) -> float:
    return float(np.percentile(values, percentile)) if values else 0.0


def _tokens_by_source(statistics: Sequence[Statistics]) -> dict[str, int]:
    totals: dict[str, int] = {}
    for each in statistics:
        for source, count in each.sources.items():
            totals[source] = totals.get(source, 0) + count
    return dict(sorted(totals.items()))
