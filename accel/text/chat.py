"""Prompts for instruct models, through their own chat template."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from accel.draft_tree import TokenArray
from accel.errors import UnsupportedPrompt
from accel.text.template import TemplateFailed, render, render_messages
from accel.text.tokenizer import Tokenizer

_PLACE = "\ue000redraft\ue001"
"""Stands for the message while the template is rendered: private-use characters."""


def chat_tokens(tokenizer: Tokenizer, question: str, answer: str) -> TokenArray:
    """One user message, and the beginning of the assistant's answer. int32 [n].

    The template's own text may hold control tokens; the question is encoded apart from it, so
    that nothing in it can act as one. Raises UnsupportedPrompt when the template is broken.
    """
    try:
        head, tail = template_parts(tokenizer)
    except TemplateFailed as error:
        raise UnsupportedPrompt(
            f"the model's chat template fails ({error}); use another model for edits"
        ) from error
    return np.concatenate(
        [
            tokenizer.encode_with_specials(head),
            tokenizer.encode(question),
            tokenizer.encode_with_specials(tail),
            tokenizer.encode(answer),
        ]
    )


def template_parts(tokenizer: Tokenizer) -> tuple[str, str]:
    """What the template writes before a user's message and behind it. Raises TemplateFailed."""
    assert tokenizer.chat_template is not None, "the caller checks for a template"
    variables = tuple(sorted(tokenizer.template_variables.items()))
    rendered = render(tokenizer.chat_template, _PLACE, variables)
    head, found, tail = rendered.partition(_PLACE)
    if not found:
        raise TemplateFailed("it leaves the message out")
    return head, tail


def conversation_tokens(tokenizer: Tokenizer, messages: Sequence[tuple[str, str]]) -> TokenArray:
    """Messages by role and text, and the beginning of the assistant's answer. int32 [n].

    As in ``chat_tokens`` nothing in a message acts as a control token. Raises UnsupportedPrompt
    when the model has no template, or when its template does not take these roles.
    """
    if tokenizer.chat_template is None:
        raise UnsupportedPrompt("the model has no chat template; use an instruct model for chats")
    places = tuple((role, _place(number)) for number, (role, _) in enumerate(messages))
    variables = tuple(sorted(tokenizer.template_variables.items()))
    try:
        rendered = render_messages(tokenizer.chat_template, places, variables)
    except TemplateFailed as error:
        raise UnsupportedPrompt(
            f"the model's chat template does not take this conversation ({error}); try other roles"
        ) from error
    pieces = re.split("\ue000redraft([0-9]+)\ue001", rendered)
    if sorted(map(int, pieces[1::2])) != list(range(len(messages))):
        raise UnsupportedPrompt(
            "the model's chat template leaves a message out; let user and assistant take turns"
        )
    return np.concatenate(
        [
            tokenizer.encode(messages[int(piece)][1])
            if number % 2
            else tokenizer.encode_with_specials(piece)
            for number, piece in enumerate(pieces)
        ]
    ).astype(np.int32)


def _place(number: int) -> str:
    """Stands for a message while the template is rendered."""
    return f"\ue000redraft{number}\ue001"
