"""Special tokens of a vocabulary by kind of prompt. Never looks at a model's name."""

from __future__ import annotations

from dataclasses import dataclass

from accel.text.families import FAMILIES, FileFormat, Order, PromptFamily
from accel.text.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class FimFormat:
    """Tokens of fill-in-the-middle. ``middle`` is None where the prefix simply goes on."""

    prefix: int
    suffix: int
    middle: int | None
    order: Order
    family: str = ""
    """Name of the models with such tokens."""
    files: FileFormat | None = None
    """Format of other files in a prompt, None for none."""
    ends: frozenset[int] = frozenset()
    """Tokens that end what is written, the markers among them."""


_FILE_MARKS = ("<|file_sep|>", "<file_sep>", "<|file_separator|>", "<filename>")


def fim_format_of(tokenizer: Tokenizer) -> FimFormat | None:
    """Return the fill-in-the-middle tokens of a vocabulary, None when it has none. What the
    metadata of a model names goes before the names of the table."""
    return _named_format(tokenizer) or _known_format(tokenizer)


def family_of(tokenizer: Tokenizer) -> PromptFamily | None:
    """Return the first family of the table whose tokens a vocabulary has."""
    for family in FAMILIES:
        has = all(tokenizer.special(name) is not None for name in (*family.hole, *family.needs))
        if has and all(tokenizer.special(name) is None for name in family.lacks):
            return family
    return None


def _known_format(tokenizer: Tokenizer) -> FimFormat | None:
    family = family_of(tokenizer)
    if family is None:
        return None
    prefix, suffix = tokenizer.special(family.prefix), tokenizer.special(family.suffix)
    middle = tokenizer.special(family.middle) if family.middle else None
    assert prefix is not None
    assert suffix is not None
    ends = map(tokenizer.special, (*family.hole, *family.ends))
    return FimFormat(
        *(prefix, suffix, middle, family.order, family.name, family.files),
        ends=frozenset(token for token in ends if token is not None),
    )


def _named_format(tokenizer: Tokenizer) -> FimFormat | None:
    """Return the tokens that metadata names, where there is one for each part of a hole. Order and
    files are those of the family whose tokens they are."""
    named = tokenizer.named_tokens
    prefix, suffix, middle = (named.get(name) for name in ("prefix", "suffix", "middle"))
    if prefix is None or suffix is None or middle is None:
        return None
    if not all(0 <= token < tokenizer.vocabulary_size for token in (prefix, suffix, middle)):
        return None
    family_format = _known_format(tokenizer)
    if family_format is not None and (family_format.prefix, family_format.suffix) == (
        prefix,
        suffix,
    ):
        return family_format
    ends = frozenset({prefix, suffix, middle})
    return FimFormat(prefix, suffix, middle, Order.PREFIX_FIRST, ends=ends)


def file_format_of(tokenizer: Tokenizer) -> FileFormat | None:
    """Return the format of other files in prompts, None if the model has no way."""
    fim = fim_format_of(tokenizer)
    if fim is not None:
        return fim.files
    marks = (mark for mark in _FILE_MARKS if tokenizer.special(mark) is not None)
    mark = next(marks, None)
    return None if mark is None else FileFormat(mark)
