"""Which special tokens a vocabulary has for which kind of prompt. Never looks at a model's name."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from accel.text.tokenizer import Tokenizer


class Order(str, Enum):
    """Where the suffix stands in a fill-in-the-middle prompt."""

    SUFFIX_FIRST = "suffix_first"
    """PRE SUF suffix MID prefix: typing only appends, so the KV cache stays."""
    SUFFIX_PREFIX_MIDDLE = "suffix_prefix_middle"
    """SUF suffix PRE prefix MID."""
    MIDDLE_BEFORE_LINE = "middle_before_line"
    """SUF suffix PRE lines MID line: ``markers.middle_place`` says where it is cut."""
    PREFIX_FIRST = "prefix_first"
    """PRE prefix SUF suffix MID."""
    PREFIX_ALONE = "prefix_alone"
    """prefix: for models too small to gain from what stands behind the hole."""


@dataclass(frozen=True, slots=True)
class FillFormat:
    """Tokens of fill-in-the-middle. ``middle`` is None where the prefix simply goes on."""

    prefix: int
    suffix: int
    middle: int | None
    order: Order
    """The order to use while nothing is known about the model."""


@dataclass(frozen=True, slots=True)
class EditFormat:
    """Tokens of instruction edits."""

    instruction: int
    before: int
    after: int
    places: tuple[int, int] | None = None
    """Stand around each place in the code that the instruction is about."""


FILL_NAMES = [
    ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", Order.PREFIX_FIRST),
    ("<fim_prefix>", "<fim_suffix>", "<fim_middle>", Order.PREFIX_FIRST),
    ("<fim-prefix>", "<fim-suffix>", "<fim-middle>", Order.PREFIX_FIRST),
    ("<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>", Order.PREFIX_FIRST),
    ("\u2581<PRE>", "\u2581<SUF>", "\u2581<MID>", Order.PREFIX_FIRST),
    ("<PRE>", "<SUF>", "<MID>", Order.PREFIX_FIRST),
    ("<[fim-prefix]>", "<[fim-suffix]>", "<[fim-middle]>", Order.SUFFIX_PREFIX_MIDDLE),
    ("<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>", Order.PREFIX_FIRST),
    ("[PREFIX]", "[SUFFIX]", None, Order.SUFFIX_PREFIX_MIDDLE),
]
"""What families call the tokens before the prefix, the suffix and the middle, and their order."""
_EDIT_NAMES = ("<|edit_instruction|>", "<|edit_before|>", "<|edit_after|>")
_PLACE_NAMES = ("<|reserved_0|>", "<|reserved_1|>")
_FILE_NAMES = ("<|file_sep|>", "<file_sep>", "<|file_separator|>", "<filename>")


def fill_format(tokenizer: Tokenizer) -> FillFormat | None:
    """The fill-in-the-middle tokens of a vocabulary, None when it has none."""
    for prefix_name, suffix_name, middle_name, order in FILL_NAMES:
        prefix, suffix = tokenizer.special(prefix_name), tokenizer.special(suffix_name)
        middle = tokenizer.special(middle_name) if middle_name else None
        if prefix is None or suffix is None or (middle_name and middle is None):
            continue
        # Models with our own edit tokens are trained for typing: what is typed is appended, so
        # that the KV cache stays while the cursor is in a line.
        own = edit_format(tokenizer) is not None
        return FillFormat(prefix, suffix, middle, Order.MIDDLE_BEFORE_LINE if own else order)
    return None


def edit_format(tokenizer: Tokenizer) -> EditFormat | None:
    """The edit tokens of a vocabulary, None when it has none."""
    ids = [tokenizer.special(name) for name in _EDIT_NAMES]
    if None in ids:
        return None
    instruction, before, after = [token for token in ids if token is not None]
    begin, end = (tokenizer.special(name) for name in _PLACE_NAMES)
    places = None if begin is None or end is None else (begin, end)
    return EditFormat(instruction, before, after, places)


def file_separator(tokenizer: Tokenizer) -> int | None:
    """The token before the path of a file, None when the vocabulary has none."""
    found = (tokenizer.special(name) for name in _FILE_NAMES)
    return next((token for token in found if token is not None), None)


def orders(form: FillFormat) -> list[Order]:
    """Orders that the tokens allow."""
    if form.middle is None:
        return [Order.SUFFIX_PREFIX_MIDDLE, Order.PREFIX_ALONE]
    return list(Order)
