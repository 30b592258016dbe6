"""Prompts for instruct models, through their own chat template."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from accel.draft_tree import TokenArray
from accel.errors import UnsupportedPrompt
from accel.text.template import Pieces, TemplateFailed, render
from accel.text.tokenizer import Tokenizer

_TABLE = json.loads(Path(__file__).with_name("thinking.json").read_text("utf-8"))
_OFF: dict[str, object] = _TABLE["off"]
"""Variables of templates that switch thinking off. Sources: the chat templates of Qwen3, SmolLM3,
GLM-4.5, Granite 3, DeepSeek-V3.1, Seed-OSS, Command A, gpt-oss, Magistral, Kimi, Apertus and the
distills of DeepSeek-R1."""

_HARMONY = "<|start|>assistant"
_HARMONY_ANSWER = "<|channel|>final<|message|>"
"""gpt-oss says for every message whether it is one of thinking."""

_BLOCKS: list[tuple[str, str, str]] = _TABLE["blocks"]
"""The beginning of thinking, its end, and the text between that and the answer."""


def chat_tokens(tokenizer: Tokenizer, question: str, answer: str) -> TokenArray:
    """One user message, and the beginning of the assistant's answer. int32 [n]. Nothing in the
    question can act as a control token; thinking is switched off, or closed. Raises
    UnsupportedPrompt when the template is broken."""
    assert tokenizer.chat_template is not None, "the caller checks for a template"
    try:
        pieces = rendered_question(tokenizer, question)
    except TemplateFailed as error:
        raise UnsupportedPrompt(
            f"the model's chat template fails ({error}); use another model for edits"
        ) from error
    opening = answer_opening(pieces)
    return _encoded(tokenizer, (*pieces, (opening, False), (answer, True)))


def rendered_question(tokenizer: Tokenizer, question: str) -> Pieces:
    """One user message in the template, with thinking switched off. Raises TemplateFailed."""
    assert tokenizer.chat_template is not None, "the caller checks for a template"
    messages, names = [{"role": "user", "content": question}], tokenizer.template_variables
    off = switched_off(tokenizer.chat_template)
    try:
        pieces = render(tokenizer.chat_template, messages, {**names, **off})
    except TemplateFailed:
        if not off:
            raise
        # It may know other values of these variables.
        pieces = render(tokenizer.chat_template, messages, names)
    return pieces


def conversation_tokens(
    tokenizer: Tokenizer,
    messages: Sequence[Mapping[str, object]],
    variables: Mapping[str, object] | None = None,
    tools: Sequence[object] = (),
    *,
    thinks: bool = True,
) -> TokenArray:
    """Return the tokens of ``messages``, see ``template.render``, and of the beginning of the
    assistant's answer. int32 [n]. ``variables``: what the template may use besides the names of
    tokens, as ``enable_thinking``; ``tools``: functions that the model may call; ``thinks``: the
    model may think before it answers. Nothing in a message acts as a control token. Raises
    UnsupportedPrompt without a template, or for roles that it does not take."""
    if tokenizer.chat_template is None:
        raise UnsupportedPrompt("the model has no chat template; use an instruct model for chats")
    off = {} if thinks else switched_off(tokenizer.chat_template)
    values = {**tokenizer.template_variables, **off, **(variables or {})}
    try:
        pieces = with_all_instructions(tokenizer.chat_template, messages, values, tools)
    except TemplateFailed as error:
        raise UnsupportedPrompt(
            f"the model's chat template does not take this conversation ({error}); let user and "
            "assistant take turns"
        ) from error
    return _encoded(tokenizer, pieces if thinks else (*pieces, (answer_opening(pieces), False)))


def with_all_instructions(
    template: str,
    messages: Sequence[Mapping[str, object]],
    values: Mapping[str, object],
    tools: Sequence[object],
) -> Pieces:
    """Return ``messages`` in the template. Where it fails, or leaves a system message out, these
    are merged in their order: into one at the beginning, else into the user's first message. Raises
    TemplateFailed."""
    instructions = [str(each["content"]) for each in messages if each["role"] == "system"]
    others = [each for each in messages if each["role"] != "system"]
    merged = "\n\n".join(instructions)
    forms: list[Sequence[Mapping[str, object]]] = [messages]
    if instructions:
        forms.append([{"role": "system", "content": merged}, *others])
    if instructions and others and others[0]["role"] == "user":
        text = f"{merged}\n\n{others[0]['content']}"
        forms.append([{**others[0], "content": text}, *others[1:]])
    incomplete, failed = None, None
    for form in forms:
        try:
            pieces = render(template, form, values, tools)
        except TemplateFailed as error:
            failed = failed or error
            continue
        text = "".join(piece for piece, _ in pieces)
        if all(instruction.strip() in text for instruction in instructions):
            return pieces
        incomplete = incomplete or pieces
    if incomplete is None:
        assert failed is not None
        raise failed
    return incomplete


def takes_tools(template: str | None) -> bool:
    """Return if a chat template says of functions that the model may call."""
    return template is not None and re.search(r"\btools\b", template) is not None


def _encoded(tokenizer: Tokenizer, pieces: Pieces) -> TokenArray:
    tokens = tokenizer.encode_with_controls(pieces)
    return tokenizer.opened(tokens) if tokenizer.opens_chats else tokens


def switched_off(template: str) -> dict[str, object]:
    """Variables by which this template, or none, lets a model answer at once."""
    options = {name: value for name, value in _OFF.items() if re.search(rf"\b{name}\b", template)}
    if "reasoning_effort" in template:
        options["reasoning_effort"] = "none" if re.search(r"['\"]none['\"]", template) else "low"
    return options


def answer_opening(pieces: Pieces) -> str:
    """Return the text between a rendered prompt and an answer that is begun for the model: the end
    of the thinking that the template begins after the last message, if it does."""
    tail = pieces[-1][0] if pieces and not pieces[-1][1] else ""
    offset, begin, end, between = max((tail.rfind(block[0]), *block) for block in _BLOCKS)
    inside = tail[offset + len(begin) :]
    if offset >= 0 and end not in inside:
        # A tag is on a line of its own, as Qwen3 closes it.
        lines = "\n" if inside.endswith("\n") else "\n\n"
        return f"{lines if end.startswith('</') else ''}{end}{between}"
    if tail.endswith(_HARMONY):
        return _HARMONY_ANSWER
    return ""
