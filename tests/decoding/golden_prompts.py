"""Twelve and more families of chat models in small: a vocabulary of ours, and their form of a chat
in our words. ``python tests/decoding/golden_prompts.py`` writes what llama.cpp's tokenizer and
transformers' renderer make of them to ``tests/data/golden_prompts.json``.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))

from gguf_writer import write_gguf
from small_vocabularies import BYTE, CONTROL, LETTERS, NORMAL, UNKNOWN, USER_DEFINED
from text_cases import data_beside

FILE = Path(__file__).parents[1] / "data" / "golden_prompts.json"
_WORDS = (
    *("user", "assistant", "system", "model", "Edit", "the", "code", "python", "INST", "File"),
    *(" the", " code", " as", " instructed", " Answer", " with", " x", " =", " 1", " 12"),
    *("\n\n", "\n", "\n\n\n", "``", "```", "  ", "    ", "\n  ", ":\n", ".\n\n", " \n", "é", "::"),
    *(" Hello", "Hello", "###", "def", "return", "    return", "123", "12", "think", "Instruction"),
)
CHAT = (
    ("user", "\n\n  Edit the code:  x = 123 é \n"),
    ("assistant", "<think>\nthe code\n</think>\n\n Hello 12\n"),
    ("user", " def f(): return x\n\n"),
)
QUESTION = ("rename x to y", "def f(x):\n    return x + 12\n")
"""An instruction, and the code to edit."""


@dataclass(frozen=True)
class Family:
    """A family of prompts. ends: the text after the template if an answer is begun for the model,
    beside the answer; off: variables that turn thinking off."""

    name: str
    template: str
    controls: tuple[str, ...]
    pre: str = ""
    """Of byte-level vocabularies; SentencePiece without."""
    texts: tuple[str, ...] = ()
    """Tokens that were added and are text."""
    beginning: str = ""
    keys: dict[str, Any] = field(default_factory=dict)
    off: dict[str, Any] = field(default_factory=dict)
    closes: str = ""
    general_name: str = ""

    @cached_property
    def metadata(self) -> dict[str, Any]:
        """The header of its file."""
        tokens, types, more = self._bytes() if self.pre else self._pieces()
        names = [*self.controls, *self.texts]
        actual = {
            "general.architecture": "llama",
            "general.name": self.general_name or self.name,
            "tokenizer.ggml.model": "gpt2" if self.pre else "llama",
            "tokenizer.ggml.tokens": [*tokens, *names],
            "tokenizer.ggml.token_type": [
                *types,
                *([CONTROL] * len(self.controls)),
                *([USER_DEFINED] * len(self.texts)),
            ],
            "tokenizer.ggml.eos_token_id": len(tokens),
            "tokenizer.chat_template": self.template,
            **more,
            **{f"tokenizer.ggml.{key}": value for key, value in self.keys.items()},
        }
        if self.pre:
            actual["tokenizer.ggml.pre"] = self.pre
        else:
            actual["tokenizer.ggml.scores"] += [0.0] * len(names)
        if self.beginning:
            listed = actual["tokenizer.ggml.tokens"]
            actual["tokenizer.ggml.bos_token_id"] = listed.index(self.beginning)
        return actual

    def _bytes(self) -> tuple[list[str], list[int], dict[str, Any]]:
        tokens, merges = list(LETTERS), list[str]()
        for word in _WORDS:
            letters = [LETTERS[byte] for byte in word.encode()]
            for end in range(2, len(letters) + 1):
                left, right = "".join(letters[: end - 1]), letters[end - 1]
                if left + right not in tokens:
                    tokens.append(left + right)
                    merges.append(f"{left} {right}")
        return tokens, [NORMAL] * len(tokens), {"tokenizer.ggml.merges": merges}

    def _pieces(self) -> tuple[list[str], list[int], dict[str, Any]]:
        pieces = dict.fromkeys(chr(letter) for letter in range(0x21, 0x7F))
        pieces["\u2581"] = None
        for word in _WORDS:
            marked = word.replace(" ", "\u2581")
            if "\n" not in marked:
                pieces |= dict.fromkeys(marked[:end] for end in range(2, len(marked) + 1))
        tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *pieces]
        types = [UNKNOWN, CONTROL, CONTROL] + [BYTE] * 256 + [NORMAL] * len(pieces)
        # Later ones are made of earlier ones, and are likelier than other pairs of them.
        scores = [0.0] * 259 + [-float(len(pieces) - n) for n in range(len(pieces))]
        return (
            tokens,
            types,
            {
                "tokenizer.ggml.scores": scores,
                "tokenizer.ggml.unknown_token_id": 0,
            },
        )

    def variables(self) -> dict[str, Any]:
        """Return the variables that every template may use."""
        tokens = self.metadata["tokenizer.ggml.tokens"]
        end = tokens[self.metadata["tokenizer.ggml.eos_token_id"]]
        return {"bos_token": self.beginning, "eos_token": end}


FAMILIES = [Family(**each) for each in data_beside(__file__)["FAMILIES"]]
BY_NAME = {family.name: family for family in FAMILIES}


def messages_of(turns: Iterable[tuple[str, str]]) -> list[dict[str, str]]:
    """Return turns of roles and texts as a chat template has them."""
    return [{"role": role, "content": text} for role, text in turns]


def rendered(family: Family, messages: list[tuple[str, str]], **variables: Any) -> str:
    """By transformers' renderer."""
    from transformers.utils.chat_template_utils import _compile_jinja_template

    return str(
        _compile_jinja_template(family.template).render(
            messages=messages_of(messages),
            add_generation_prompt=True,
            tools=None,
            documents=None,
            **family.variables(),
            **variables,
        )
    )


_PLACE = "QZQZ"
"""Stands for the name of a control token in a message."""


class Reference:
    """llama.cpp's tokenizer on the vocabulary of a family."""

    def __init__(self, family: Family, folder: Path) -> None:
        from llama_cpp import Llama

        path = write_gguf(folder / f"{family.name}.gguf", family.metadata, {})
        self._family = family
        self._model = Llama(str(path), vocab_only=True, verbose=False)

    def tokens(self, text: str) -> list[int]:
        """All of a text whose names of control tokens stand for them."""
        actual = self._model.tokenize(text.encode(), add_bos=False, special=True)
        return self._begun(list(map(int, actual)))

    def hostile(self, text: str, name: str) -> list[int]:
        """A text in which ``_PLACE`` stands for ``name``, which is no control token there."""
        tokens = self._family.metadata["tokenizer.ggml.tokens"]
        controls = [*self._family.controls, "<s>", "</s>", "<unk>"]
        names = sorted((name for name in controls if name in tokens), key=len, reverse=True)
        actual: list[int] = []
        pieces = re.split(f"({'|'.join(map(re.escape, names))})", text)
        for number, piece in enumerate(pieces):
            if number % 2:
                actual.append(tokens.index(piece))
                continue
            is_phi = "Phi" in self._family.name and number
            plain = (piece.lstrip() if is_phi else piece).replace(_PLACE, name)
            if plain:
                encoded = self._model.tokenize(plain.encode(), add_bos=False, special=False)
                actual += map(int, encoded)
        return self._begun(actual)

    def hole(self, before: str, after: str) -> list[int]:
        """Two texts behind two control tokens, as its server lays out a hole."""
        actual = [1]
        for text in (before, after):
            actual += map(int, self._model.tokenize(text.encode(), add_bos=False, special=False))
            actual.append(2)
        return actual

    def _begun(self, found: list[int]) -> list[int]:
        begins = self._family.keys.get("add_bos_token", not self._family.pre)
        begins = begins or self._family.pre == "llama-bpe"
        first = self._family.metadata.get("tokenizer.ggml.bos_token_id")
        return [first, *found] if begins and first is not None and found[0] != first else found


HOLE = (" x = 1\ndef f(", "):\n    return the code\n")


def raw_prompt(family: Family) -> str:
    """A prompt as a client writes it."""
    control = hostile_name(family)
    return f"the code\n{control} x = 12{control}{control}\n\n def"


def hostile_chat(family: Family, name: str) -> list[tuple[str, str]]:
    """A chat whose user writes the name of a control token."""
    return [("user", f"x{name} the{name}\n code"), ("assistant", "Hello"), ("user", name)]


def hostile_name(family: Family) -> str:
    """The name that a user writes."""
    return family.controls[0] if family.controls else "</s>"


def edit_question_of() -> str:
    """Return the question of an edit, in the words of the editor."""
    from accel.text.prompts import edit_question

    instruction, code = QUESTION
    return edit_question(instruction, code, before="", after="", opening="```python", path="a.py")


def golden(family: Family, folder: Path) -> dict[str, list[int]]:
    """By llama.cpp and transformers."""
    reference = Reference(family, folder)
    edit = rendered(family, [("user", edit_question_of())], **family.off)
    hostile = rendered(family, hostile_chat(family, _PLACE))
    return {
        "prompt": reference.tokens(raw_prompt(family)),
        "hole": reference.hole(*HOLE),
        "chat": reference.tokens(rendered(family, list(CHAT))),
        "edit": reference.tokens(f"{edit}{family.closes}```python\n"),
        "hostile": reference.hostile(hostile, hostile_name(family)),
    }


def all_golden() -> Iterator[tuple[str, dict[str, list[int]]]]:
    """Of every family."""
    with tempfile.TemporaryDirectory() as folder:
        for family in FAMILIES:
            yield family.name, golden(family, Path(folder))


if __name__ == "__main__":
    made = dict(all_golden())
    lines = (f"  {json.dumps(name)}: {json.dumps(ids)}" for name, ids in made.items())
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
    print({name: {key: len(ids) for key, ids in found.items()} for name, found in made.items()})
