"""Faults of a model's prompt formats, reported before its suggestions are odd."""

from __future__ import annotations

import re

from accel.text.chat import rendered_question
from accel.text.families import FAMILIES, PromptFamily
from accel.text.special_tokens import family_of, fim_format_of
from accel.text.template import TemplateFailed
from accel.text.tokenizer import Tokenizer

_CONTROL_NAME = re.compile(r"<\|[\w-]{1,40}\|>|<｜[\w▁]{1,40}｜>")
"""The spelling of control tokens; ``<|user|>`` is one, ``### Instruction:`` is text."""


def format_problems(tokenizer: Tokenizer) -> list[str]:
    """Sentences about tokens of fill-in-the-middle and of the chat template, none for a sound
    model. The template is read and not rendered."""
    problems = [*tokenizer.problems, *_fill_problems(tokenizer)]
    return [*problems, *_unknown_names(tokenizer, tokenizer.chat_template or "")]


def template_problems(tokenizer: Tokenizer) -> list[str]:
    """Return the problems of the template as rendered around a message: it may fail or leave that
    out. Starts a process."""
    if tokenizer.chat_template is None:
        return []
    try:
        pieces = rendered_question(tokenizer, "a")
    except TemplateFailed as error:
        return [f"its chat template cannot be used: {error}"]
    own = "".join(text for text, is_message in pieces if not is_message)
    return _unknown_names(tokenizer, own)


def _fill_problems(tokenizer: Tokenizer) -> list[str]:
    problems = []
    for part_name, token in tokenizer.named_tokens.items():
        if not 0 <= token < tokenizer.vocabulary_size:
            problems.append(
                f"its metadata names token {token} for the {part_name} of a hole, and its "
                f"vocabulary has {tokenizer.vocabulary_size}"
            )
        elif not tokenizer.is_named(token):
            problems.append(_ordinary(f"{tokenizer.decode([token])!r} (token {token})"))
    fim = fim_format_of(tokenizer)
    if fim is None:
        return [*problems, *_incomplete(tokenizer)]
    family = family_of(tokenizer)
    if family is not None and not tokenizer.named_tokens:
        ids = ((name, tokenizer.special(name)) for name in family.hole)
        problems += [
            _ordinary(name)
            for name, token in ids
            if token is not None and not tokenizer.is_named(token)
        ]
    return problems


def _ordinary(name: str) -> str:
    return (
        f"{name} asks for a hole to be filled and is ordinary text in its vocabulary: the file was "
        "probably converted wrongly"
    )


def _incomplete(tokenizer: Tokenizer) -> list[str]:
    def lacking(family: PromptFamily) -> list[str]:
        return [name for name in family.hole if tokenizer.special(name) is None]

    partly_there = [family for family in FAMILIES if len(lacking(family)) < len(family.hole)]
    if not partly_there:
        return []
    nearest = min(partly_there, key=lambda family: len(lacking(family)))
    has = [name for name in nearest.hole if name not in lacking(nearest)]
    return [
        f"it has {' and '.join(has)} and lacks {' and '.join(lacking(nearest))}: it cannot fill "
        "in the middle"
    ]


def _unknown_names(tokenizer: Tokenizer, text: str) -> list[str]:
    names = dict.fromkeys(_CONTROL_NAME.findall(text))
    unknown = [name for name in names if tokenizer.special(name) is None]
    if not unknown:
        return []
    return [
        f"its chat template writes {', '.join(unknown[:4])}, of which its vocabulary has no token: "
        "the template may be another model's"
    ]
