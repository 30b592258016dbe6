"""Text to token ids and back, byte for byte, from a tokenizer file. Loads no torch."""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Callable, Iterable
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer as FastTokenizer

from accel.draft_tree import TokenArray
from accel.errors import BrokenModel, ModelNotFound
from accel.files.gguf.control_names import is_control_name
from accel.text.byte_index import ByteIndex, byte_order
from accel.text.vocabulary_files import LEAST_TOKENS, Arrays, VocabularyFiles

logger = logging.getLogger(__name__)


class Tokenizer:
    """A fast tokenizer of the tokenizers library, read for code. Text is encoded as it stands: no
    token is added, and the name of a control token in it is ordinary text. Tokens map to bytes, so
    that those of an encoding spell the text exactly."""

    chat_template: str | None = None
    """Jinja source of the model's chat format."""

    def __init__(self, definition: str, head: dict[str, Any] | None = None) -> None:
        """``definition`` is the content of a ``tokenizer.json``, and ``head`` what ``plain_head``
        gave for it before: to read JSON of a large vocabulary twice takes as long as all else.

        Raises BrokenModel when it is not one.
        """
        try:
            if head is not None:
                marked, plain = head, definition
            else:
                marked = _with_controls(json.loads(definition))
                plain = json.dumps(_without_leading_blank(marked))
            self._tokenizer = FastTokenizer.from_str(plain)
        except Exception as error:
            raise BrokenModel(f"tokenizer.json is damaged ({error}); fetch the model again") from (
                error
            )
        self._tokenizer.encode_special_tokens = True
        self._definition, self._head = definition, without_tokens(marked)
        self.template_variables: dict[str, str] = {}
        self._leading_to: dict[str, frozenset[int]] = {}
        self.named_tokens: dict[str, int] = {}
        """Ids that the model's metadata names for ``prefix``, ``suffix`` and ``middle`` of a hole;
        they may lie outside of the vocabulary."""
        self.edit_lines: int | None = None
        """The number of lines above and below the code to edit in training, if the model names
        it."""
        self.sha256 = hashlib.sha256(definition.encode()).hexdigest()
        self.opens_chats = False
        """True if a chat begins with ``opening`` although its template does not write that."""
        self.problems: tuple[str, ...] = ()
        """Faults of the model's tokens, in words."""
        added = marked["added_tokens"]
        self._added = {token["id"]: token["content"] for token in added}
        self._controls = {token["content"]: token for token in added if token["special"]}
        self._byte_level = "ByteLevel" in json.dumps(marked.get("decoder"))
        if head is not None:
            self.vocabulary_size = int(head["vocabulary_size"])
        else:
            ids = self._tokenizer.get_vocab(with_added_tokens=True).values()
            self.vocabulary_size = max(ids, default=-1) + 1

    @classmethod
    def empty(cls) -> Tokenizer:
        """Return a tokenizer without tokens, for what takes any."""
        return cls('{"model": {"type": "BPE", "vocab": {}, "merges": []}}')

    @property
    def fast(self) -> FastTokenizer:
        """The tokenizer of the library, as it reads plain text."""
        return self._tokenizer

    @classmethod
    def from_folder(
        cls, folder: str | Path, definition: str = "", head: dict[str, Any] | None = None
    ) -> Tokenizer:
        """Read ``tokenizer.json`` of a folder, or take a ``definition`` in place of it, and the
        template beside it. ``head``: see ``__init__``.

        Raises ModelNotFound when the folder holds no such file, BrokenModel when it is damaged.
        """
        file = Path(folder) / "tokenizer.json"
        if not definition and not file.is_file():
            what = "holds no tokenizer.json" if Path(folder).is_dir() else "is not a folder"
            raise ModelNotFound(f"{folder} {what}; give the folder of a model")
        try:
            tokenizer = cls(definition or file.read_text("utf-8"), head)
            return tokenizer._with_template(Path(folder))
        except (OSError, UnicodeDecodeError) as error:
            raise BrokenModel(f"{file} cannot be read ({error}); fetch the model again") from error

    def _with_template(self, folder: Path) -> Tokenizer:
        try:
            config = json.loads((folder / "tokenizer_config.json").read_text("utf-8"))
        except (OSError, ValueError):
            config = {}
        template = config.get("chat_template")
        if isinstance(template, list):
            template = next((t["template"] for t in template if t.get("name") == "default"), None)
        file = folder / "chat_template.jinja"
        self.chat_template = file.read_text("utf-8") if file.is_file() else template
        for name in ("bos_token", "eos_token", "pad_token", "unk_token"):
            value = config.get(name)
            text = value.get("content") if isinstance(value, dict) else value
            self.template_variables[name] = text or ""
        self.named_tokens = dict(config.get("fim_tokens") or {})
        lines = config.get("edit_lines")
        self.edit_lines = lines if isinstance(lines, int) and lines >= 0 else None
        self.opens_chats = bool(config.get("opens_chats"))
        self.problems = tuple(map(str, config.get("problems") or ()))
        for problem in self.problems:
            logger.warning("%s", problem)
        return self

    def encode(self, text: str) -> TokenArray:
        """Return token ids of ``text``. int32 [n]."""
        return _encoded(self._tokenizer, text)

    def encode_beginning(self, text: str, *, is_first: bool = False) -> TokenArray:
        """Return token ids of text that comes after a control token, or ``is_first`` of a prompt:
        many SentencePiece models read a blank before it. int32 [n]."""
        if self._blank == "never" or (self._blank == "first" and not is_first):
            return self.encode(text)
        return _encoded(self._with_blank, text)

    def encode_with_controls(self, pieces: Iterable[tuple[str, bool]]) -> TokenArray:
        """Return token ids of a prompt out of pieces of text, each with whether it is of the user.
        In the others the names of control tokens stand for them; tokens reach across borders of
        pieces. int32 [n]."""
        texts, controls = [""], list[dict[str, Any]]()
        for piece, is_users in pieces:
            names_apart = [piece] if is_users else self._control_names.split(piece)
            texts[-1] += names_apart[0]
            for name, text in zip(names_apart[1::2], names_apart[2::2], strict=True):
                controls.append(self._controls[name])
                texts.append(text)
        token_pieces: list[TokenArray] = []
        for number, text in enumerate(texts):
            # Phi-3's control tokens take the white space after them.
            stripped = text.lstrip() if number and controls[number - 1].get("rstrip") else text
            is_last = number == len(controls)
            text_of_piece = (
                stripped if is_last or not controls[number].get("lstrip") else stripped.rstrip()
            )
            token_pieces.append(self.encode_beginning(text_of_piece, is_first=not number))
            if not is_last:
                token_pieces.append(np.array([controls[number]["id"]], np.int32))
        return np.concatenate(token_pieces)

    def names_control(self, text: str) -> bool:
        """Return whether the name of a control token occurs in ``text``."""
        return self._control_names.search(text) is not None

    def encode_prompt(self, text: str) -> TokenArray:
        """Return token ids of a prompt as its author wrote it: the names of control tokens stand
        for them, and first come the tokens that the model expects before any text. int32 [n]."""
        return self.opened(self.encode_with_controls([(text, False)]))

    def opened(self, tokens: TokenArray) -> TokenArray:
        """``tokens`` with those before them that the model expects before any text."""
        opening = self.opening
        if np.array_equal(tokens[: len(opening)], opening):
            return tokens
        return np.concatenate([opening, tokens])

    @cached_property
    def _blank(self) -> str:
        """Return the rule for a blank that SentencePiece reads before a text: ``never``, ``first``
        (before the first piece), or ``always`` (after control tokens, too)."""
        if _without_leading_blank(self._head) == self._head:
            return "never"
        is_first = '"prepend_scheme": "first"' in json.dumps(self._head.get("pre_tokenizer"))
        return "first" if is_first else "always"

    @cached_property
    def _with_blank(self) -> FastTokenizer:
        marked = _with_controls(json.loads(self._definition))
        tokenizer = FastTokenizer.from_str(json.dumps(marked))
        tokenizer.encode_special_tokens = True
        return tokenizer

    @cached_property
    def reads_blanks(self) -> bool:
        """Return whether a blank is read before a text, see ``encode_beginning``."""
        return self._blank != "never"

    @cached_property
    def _control_names(self) -> re.Pattern[str]:
        names = sorted(self._controls, key=len, reverse=True)
        return re.compile(f"({'|'.join(map(re.escape, names)) or '(?!)'})")

    def decode(self, tokens: TokenArray | list[int]) -> str:
        """Return text of ``tokens``; bytes that are not UTF-8 become U+FFFD."""
        return self.decode_bytes(tokens).decode("utf-8", errors="replace")

    def decode_bytes(self, tokens: TokenArray | list[int]) -> bytes:
        """Return bytes of ``tokens`` one after another."""
        table = self.byte_table
        size = len(table)
        return b"".join([table[token] for token in tokens if 0 <= token < size])

    def bytes_of(self, token: int) -> bytes:
        """Return bytes that one token stands for; special tokens stand for their name."""
        return self.byte_table[token] if 0 <= token < self.vocabulary_size else b""

    def special(self, name: str) -> int | None:
        """Id of the token spelt exactly ``name``, such as ``<|fim_prefix|>``; None without one."""
        token: int | None = self._tokenizer.token_to_id(name)
        return token

    def is_named(self, token: int) -> bool:
        """Return whether a token stands for its whole name, and is no piece of ordinary text."""
        return token in self._added

    @cached_property
    def opening(self) -> TokenArray:
        """Tokens that the model expects before any text, often one or none. int32 [n]."""
        encoding = self._tokenizer.encode("a", add_special_tokens=True)
        count = next(i for i, mark in enumerate(encoding.special_tokens_mask) if not mark)
        return np.array(encoding.ids[:count], np.int32)

    @cached_property
    def byte_index(self) -> ByteIndex:
        """The vocabulary in order of its bytes."""
        controls = self.special_tokens
        table = [b"" if token in controls else each for token, each in enumerate(self.byte_table)]
        return ByteIndex(table, self.kept("order", lambda: {"order": byte_order(table)})["order"])

    def kept(self, name: str, make: Callable[[], Arrays]) -> Arrays:
        """Arrays that are slow to derive from the vocabulary, from the disk where they were made
        before."""
        if self.vocabulary_size < LEAST_TOKENS:
            return make()
        return VocabularyFiles(self.sha256[:32]).arrays(name, make)

    @cached_property
    def special_tokens(self) -> frozenset[int]:
        """Ids of the control tokens: added tokens that no text may hold."""
        return frozenset(int(token["id"]) for token in self._controls.values())

    def leading_to(self, character: str) -> frozenset[int]:
        """Return ids of the tokens whose first character that is no blank is this one; of a line
        break, those of either kind."""
        if character not in self._leading_to:
            first = (b"\n", b"\r") if character in "\r\n" else (character.encode(),)
            tokens = (
                n for n, text in enumerate(self.byte_table) if text.lstrip(b" \t").startswith(first)
            )
            self._leading_to[character] = frozenset(tokens) - self.special_tokens
        return self._leading_to[character]

    @cached_property
    def byte_table(self) -> list[bytes]:
        """Bytes of every id, ``b""`` for ids without a token."""

        def spell() -> Arrays:
            table = [b""] * self.vocabulary_size
            for text, token in self._tokenizer.get_vocab(with_added_tokens=True).items():
                table[token] = text.encode() if token in self._added else self._spelt(text)
            ends = np.cumsum(list(map(len, table)), dtype=np.int64)
            return {"bytes": np.frombuffer(b"".join(table), np.uint8), "ends": ends}

        spellings = self.kept("bytes", spell)
        spelt, ends = spellings["bytes"].tobytes(), spellings["ends"].tolist()
        return [spelt[start:end] for start, end in zip([0, *ends], ends, strict=False)]

    @cached_property
    def longest_token(self) -> int:
        """Bytes of the longest token: a text has at least its length through this many tokens."""
        return max([*map(len, self.byte_table), 1])

    def last_piece(self, text: str) -> str:
        """Return the end of ``text`` that its own pre-tokenizer keeps together, such as a word."""
        pre_tokenizer = self._tokenizer.pre_tokenizer
        if pre_tokenizer is None:
            match = _LAST_WORD.search(text)
            return match.group() if match else ""
        normalizer = self._tokenizer.normalizer
        normalized = text if normalizer is None else normalizer.normalize_str(text)
        if len(normalized) != len(text):
            return ""
        pieces = pre_tokenizer.pre_tokenize_str(normalized)
        return text[pieces[-1][1][0] :] if pieces else ""

    def _spelt(self, text: str) -> bytes:
        if self._byte_level:
            return bytes(_BYTE_OF[mark] for mark in text if mark in _BYTE_OF)
        if len(text) == 6 and text.startswith("<0x") and text.endswith(">"):
            return bytes([int(text[3:5], 16)])
        return text.replace("\u2581", " ").encode()


LONG_CHARACTERS = 1 << 12
"""Longer texts are cut into tokens while other threads go on."""


def _encoded(fast: FastTokenizer, text: str) -> TokenArray:
    if len(text) <= LONG_CHARACTERS:
        encoding = fast.encode(text, add_special_tokens=False)
    else:
        (encoding,) = fast.encode_batch_fast([text], add_special_tokens=False)
    return np.array(encoding.ids, np.int32)


_LAST_WORD = re.compile(r"(?: ?\w+|\s+| ?[^\w\s]+)\Z")
"""The last word of vocabularies that do not say what they keep together."""


def plain_head(definition: dict[str, Any]) -> dict[str, Any] | None:
    """Return a definition without its tokens, where it reads code as it stands; None where its text
    has to be changed for that."""
    if _without_leading_blank(_with_controls(definition)) != definition:
        return None
    ids = [*definition["model"]["vocab"].values()]
    ids += [token["id"] for token in definition["added_tokens"]]
    return {**without_tokens(definition), "vocabulary_size": max(ids, default=-1) + 1}


def without_tokens(definition: dict[str, Any]) -> dict[str, Any]:
    """Return all of a definition but the ordinary tokens and their merges."""
    return {name: value for name, value in definition.items() if name != "model"}


def _with_controls(definition: dict[str, Any]) -> dict[str, Any]:
    """Return the definition with control tokens marked, and without cutting or composing texts."""
    added = [
        dict(token, special=_is_control(token)) for token in definition.get("added_tokens") or []
    ]
    normalizer = _changed(
        definition.get("normalizer"),
        lambda step: None if step.get("type") in ("NFC", "NFD", "NFKC", "NFKD") else step,
    )
    return dict(
        definition, truncation=None, padding=None, added_tokens=added, normalizer=normalizer
    )


def _is_control(token: dict[str, Any]) -> bool:
    """Return whether texts may not hold an added token: white space is none, nor is a letter alone,
    as DeepSeek-Coder has them."""
    name = token["content"]
    if not name.strip() or (len(name) == 1 and name.isalpha()):
        return False
    return bool(token.get("special")) or is_control_name(name)


def _without_leading_blank(definition: dict[str, Any]) -> dict[str, Any]:
    """Return the definition without the blank that SentencePiece models read before a text, which
    is not in the text."""
    steps: dict[str, Any] = {
        name: _changed(definition[name], _without_prefix_space)
        for name in ("normalizer", "pre_tokenizer")
        if name in definition
    }
    return {**definition, **steps}


def _changed(step: Any, change: Callable[[dict[str, Any]], dict[str, Any] | None]) -> Any:
    """Return a step, or those of a sequence, as ``change`` leaves each, if it does."""
    if not isinstance(step, dict):
        return step
    for name in ("normalizers", "pretokenizers"):
        if name in step:
            steps = [_changed(inner, change) for inner in step[name]]
            return dict(step, **{name: [inner for inner in steps if inner is not None]})
    return change(step)


def _without_prefix_space(step: dict[str, Any]) -> dict[str, Any] | None:
    if step.get("type") == "Prepend":
        return None
    if step.get("type") == "Metaspace":
        fields = {name: value for name, value in step.items() if name != "add_prefix_space"}
        return dict(fields, prepend_scheme="never")
    if step.get("type") == "ByteLevel":
        return dict(step, add_prefix_space=False)
    return step


def _byte_alphabet() -> dict[str, int]:
    """Return the printable stand-ins for the 256 bytes that byte-level BPE uses (GPT-2)."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    alphabet = {chr(byte): byte for byte in printable}
    alphabet.update({chr(256 + order): byte for order, byte in enumerate(others)})
    return alphabet


_BYTE_OF = _byte_alphabet()
