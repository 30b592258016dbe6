"""A model's file or folder: opened once in a process, and asked by all who want to know of it.

Headers are read, not mapped: a file that becomes shorter meanwhile is an exception. Loads no torch.
"""

from __future__ import annotations

import json
import re
import time
from abc import ABC, abstractmethod
from collections import OrderedDict
from functools import cached_property
from math import prod
from pathlib import Path
from threading import Lock
from typing import Any

from accel.errors import BrokenModel, ModelNotFound, UnsupportedModel
from accel.files.decoder_tensors import Architecture
from accel.files.folder_architecture import FolderArchitecture, folder_architecture
from accel.files.folder_hybrid import PASSED_OVER, is_of, text_config
from accel.files.gguf.architecture import ADVICE, HYBRIDS, read_architecture
from accel.files.gguf.file import SETTLED_NS, GgufFile, is_gguf
from accel.files.gguf.header import SMALL_BLOCK
from accel.files.gguf.metadata import AGAIN, StringArray
from accel.files.gguf.rope_frequencies import read_rope_frequencies
from accel.files.gguf.vocabulary import read_vocabulary
from accel.files.gguf.weights import GgufWeights
from accel.files.memory_fit import BYTES_OF, Size, token_bytes
from accel.files.model_folder import check_folder
from accel.files.model_path import state_of, weights_files
from accel.files.safetensors import read_header
from accel.models import torch_extra
from accel.models.llama_cpp.library_files import INSTALL, is_installed
from accel.text.families import FAMILIES
from accel.text.gguf_tokenizer import kept_tokenizer, tokenizer_of
from accel.text.tokenizer import Tokenizer

MOST_OPEN = 2
"""Models that are kept open: one, and another beside it."""
COMPUTED_AS_STORED = frozenset({"Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q4_K", "Q5_K", "Q6_K"})
"""Types of blocks that our forward on a CPU does not change; those of ``quantised.file_blocks``,
which loads a compiler."""
_LICENCE = re.compile(r"^license:\s*(\S+)", re.MULTILINE)
_HEAD_OF_CARD = 4096
"""Characters of a model card among which its licence is."""


class ModelFile(ABC):
    """A model's file or folder, as it was when it was opened. Methods raise BrokenModel or
    UnsupportedModel for a model that is broken or not known here."""

    family = ""
    """As the model calls its architecture."""
    context_tokens = 0
    licence = ""
    has_template = False
    """True if it has a chat template."""

    passed_over = ""
    """Parts of the model that no forward here computes, in words."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @abstractmethod
    def check(self, backend: str = "auto") -> None:
        """Raise ModelNotFound, BrokenModel or UnsupportedModel for what ``backend`` (see
        ``ModelOptions``) cannot load, without running foreign code."""

    @property
    def is_known(self) -> bool:
        """Return whether our own forwards may compute it, as far as its header shows."""
        return True

    @property
    @abstractmethod
    def has_compiled_forward(self) -> bool:
        """Return whether our own forward on a CPU has all parts of the model. Raises BrokenModel,
        or UnsupportedModel for one that is not ``is_known``."""

    @property
    def files(self) -> list[Path]:
        """Those with weights."""
        return weights_files(self.path)

    @property
    @abstractmethod
    def parameters(self) -> int:
        """Weights."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Of the weights as they are stored."""

    @property
    @abstractmethod
    def title(self) -> str:
        """Return its name, in one or several words."""

    @property
    @abstractmethod
    def fills(self) -> bool:
        """Return whether it has the tokens of some family to fill in the middle."""

    @abstractmethod
    def token_bytes(self, dtype: str, kv_type: str) -> int:
        """Return bytes of a token's keys and values."""

    def weight_bytes(self, dtype: str) -> float:
        """Return bytes of the weights as they are computed in ``fp32``, ``bf16`` or ``int8``; int8
        of a GGUF file means as they are stored."""
        return self.parameters * BYTES_OF[dtype]

    def size(self, dtype: str, kv_type: str = "f16") -> Size:
        """Return its size in memory. ``dtype``: see ``weight_bytes``."""
        return Size(self.parameters, self.weight_bytes(dtype), self.token_bytes(dtype, kv_type))

    @property
    @abstractmethod
    def tokenizer(self) -> Tokenizer:
        """Its tokenizer."""


class GgufModel(ModelFile):
    """A GGUF file, or the several files of a split one."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        with GgufFile(path) as file:
            self._file = file
        metadata = self._about = file.metadata
        self.family = metadata.text("general.architecture") or ""
        self.context_tokens = self._number("context_length")
        self.licence = metadata.text("general.license") or ""
        self.has_template = bool(metadata.text("tokenizer.chat_template"))
        if self._number("nextn_predict_layers"):
            self.passed_over = PASSED_OVER["mtp."]

    @cached_property
    def architecture(self) -> Architecture:
        """Of the decoder, as our forward has it."""
        return read_architecture(self._file)

    @cached_property
    def weights(self) -> GgufWeights:
        """The decoder's weights, to look at: they are read by who opens the file."""
        return GgufWeights(self._file, self.architecture)

    @cached_property
    def end_tokens(self) -> frozenset[int]:
        """All tokens that end a text."""
        files = kept_tokenizer(self._about)
        if files is None:
            return read_vocabulary(self._about).end_tokens
        return frozenset(map(int, files.config["end_tokens"]))

    @cached_property
    def _is_known(self) -> bool:
        """Looked at in whole, once. Raises UnsupportedModel for what our forward has not."""
        size = self.architecture.vocabulary
        assert self.weights
        if odd := self.architecture.odd_size:
            raise UnsupportedModel(
                f"{self.path} has parts of size {odd}, no multiple of {SMALL_BLOCK}", ADVICE
            )
        with GgufFile(self.path) as file:
            read_rope_frequencies(file, self.architecture)
        assert self.end_tokens is not None
        tokens = self._about.value("tokenizer.ggml.tokens")
        count = tokens.count if isinstance(tokens, StringArray) else 0
        if count > size:
            raise BrokenModel(f"{self.path} has {count} tokens and the embeddings of {size}", AGAIN)
        return True

    @property
    def is_known(self) -> bool:
        """Return whether it is built like the models that our own forward computes. Raises
        BrokenModel."""
        try:
            return self._is_known
        except UnsupportedModel:
            return False

    def check(self, backend: str = "auto") -> None:
        """A file that neither our forward nor llama.cpp, where it may, computes is refused."""
        try:
            assert self._is_known
        except UnsupportedModel as error:
            if backend == "own":
                raise
            # All that we need of a model that llama.cpp computes.
            assert self.end_tokens is not None
            if not is_installed():
                raise UnsupportedModel(error.cause, f"llama.cpp may know it; {INSTALL}") from error
        if backend == "llama-cpp" and not is_installed():
            raise UnsupportedModel("llama.cpp is not installed", INSTALL)

    @property
    def has_compiled_forward(self) -> bool:
        return self._is_known

    @property
    def parameters(self) -> int:
        return sum(prod(tensor.shape) for tensor in self._file.tensors.values())

    @property
    def nbytes(self) -> int:
        return self._file.nbytes

    @property
    def title(self) -> str:
        return f"{self._about.text('general.name') or ''} {self.path.name}"

    @property
    def fills(self) -> bool:
        tokens = self._about.value("tokenizer.ggml.tokens")
        return isinstance(tokens, StringArray) and _has_fill_names(tokens.data)

    def token_bytes(self, dtype: str, kv_type: str) -> int:
        heads, layers = self._number("attention.head_count"), self._number("block_count")
        if (interval := self._number("full_attention_interval")) and self.family in HYBRIDS:
            layers //= interval
        width = self._number("embedding_length")
        depth = self._number("attention.key_length") or (width // heads if heads else 0)
        kv_heads = self._number("attention.head_count_kv") or heads
        return token_bytes(layers, kv_heads, depth, dtype, kv_type)

    def weight_bytes(self, dtype: str) -> float:
        if dtype != "int8":
            return super().weight_bytes(dtype)
        return sum(
            tensor.nbytes
            if tensor.type.name in COMPUTED_AS_STORED
            else prod(tensor.shape) * BYTES_OF[dtype]
            for tensor in self._file.tensors.values()
        )

    @property
    def tokenizer(self) -> Tokenizer:
        files = tokenizer_of(self._about)
        key = files.folder, files.config["sha256"]
        with _lock:
            tokenizer = _tokenizers.pop(key, None) or Tokenizer.from_folder(
                files.folder, files.definition, files.config["plain_head"]
            )
            _tokenizers[key] = tokenizer
            while len(_tokenizers) > MOST_OPEN:
                _tokenizers.popitem(last=False)
        return tokenizer

    def _number(self, key: str) -> int:
        return _count(self._about.value(f"{self.family}.{key}"))


_tokenizers: OrderedDict[tuple[Path, str], Tokenizer] = OrderedDict()
"""One for all files with a vocabulary."""


class FolderModel(ModelFile):
    """A folder with ``config.json`` and safetensors, complete or not."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        config = _object_in(path / "config.json")
        self._config = text_config(config)
        self.family = str(config.get("model_type", ""))
        self.context_tokens = self._number("max_position_embeddings")
        self.licence = _licence(path / "README.md")
        templates = _object_in(path / "tokenizer_config.json").get("chat_template")
        self.has_template = bool(templates) or (path / "chat_template.jinja").is_file()

    def check(self, backend: str = "auto") -> None:
        if backend == "llama-cpp":
            raise UnsupportedModel(
                f"{self.path} is not a GGUF file, which llama.cpp needs", "give one"
            )
        assert self._is_sound
        if torch_extra.is_installed():
            return
        needing = "" if self.has_compiled_forward else "a model that torch computes"
        if not (self.path / "tokenizer.json").is_file():
            needing = "a model with an older tokenizer, for transformers"
        if needing:
            raise UnsupportedModel(
                f"{self.path} is {needing}, and torch is not installed", torch_extra.INSTALL
            )

    @cached_property
    def architecture(self) -> FolderArchitecture | None:
        """Of the decoder, None where our own forward lacks something of it."""
        return folder_architecture(self.path)

    @property
    def has_compiled_forward(self) -> bool:
        return self.architecture is not None

    @property
    def passed_over(self) -> str:  # type: ignore[override]
        names = [name for file in self.files for name in read_header(file)]
        kinds = {
            what for name in names for prefix, what in PASSED_OVER.items() if is_of(name, prefix)
        }
        return " and ".join(sorted(kinds))

    @cached_property
    def _is_sound(self) -> bool:
        check_folder(self.path)
        return True

    @cached_property
    def parameters(self) -> int:
        return sum(prod(entry.shape) for file in self.files for entry in read_header(file).values())

    @property
    def nbytes(self) -> int:
        return sum(file.stat().st_size for file in self.files)

    @property
    def title(self) -> str:
        return self.path.name

    @property
    def fills(self) -> bool:
        file = self.path / "tokenizer.json"
        return file.is_file() and _has_fill_names(file.read_bytes())

    @property
    def tokenizer(self) -> Tokenizer:
        if (self.path / "tokenizer.json").is_file():
            return Tokenizer.from_folder(self.path)
        return Tokenizer.from_folder(self.path, converted(self.path))

    def token_bytes(self, dtype: str, kv_type: str) -> int:
        heads = self._number("num_attention_heads")
        depth = self._number("head_dim") or self._number("hidden_size") // max(heads, 1)
        kv_heads = self._number("num_key_value_heads") or heads
        layers, kinds = self._number("num_hidden_layers"), self._config.get("layer_types")
        if isinstance(kinds, list) and "linear_attention" in kinds:
            layers = kinds.count("full_attention")
        return token_bytes(layers, kv_heads, depth, dtype, kv_type)

    def _number(self, key: str) -> int:
        return _count(self._config.get(key))


def model_file(path: Path) -> ModelFile:
    """Return the model at a path, as ``find_model_path`` gives it; those asked for last are at hand
    as long as their files are the same. Raises ModelNotFound, BrokenModel or UnsupportedModel where
    a GGUF file has no sound header."""
    state = state_of(path)
    with _lock:
        model = _open.pop((path, state), None)
    if model is None:
        model = GgufModel(path) if is_gguf(path) else FolderModel(path)
        if not _is_settled(state):
            # Two writes of one moment leave the same times.
            return model
    with _lock:
        _open[path, state] = model
        while len(_open) > MOST_OPEN:
            _open.popitem(last=False)
    return model


_open: OrderedDict[tuple[Path, tuple[object, ...]], ModelFile] = OrderedDict()
_lock = Lock()


def _is_settled(state: tuple[object, ...]) -> bool:
    times = [number for stamp in state if isinstance(stamp, tuple) for number in stamp]
    newest = max(
        (time_ns for time_ns in times if isinstance(time_ns, int) and time_ns > 1 << 55), default=0
    )
    return time.time_ns() - newest > SETTLED_NS


def _count(value: object) -> int:
    return value if isinstance(value, int) and 0 <= value < 1 << 40 else 0


def _has_fill_names(vocabulary: bytes) -> bool:
    """Return whether the names of some family's fill-in-the-middle tokens are in a vocabulary."""
    return any(all(name.encode() in vocabulary for name in family.hole) for family in FAMILIES)


def _object_in(file: Path) -> dict[str, Any]:
    try:
        value = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _licence(card: Path) -> str:
    try:
        match = _LICENCE.search(card.read_text("utf-8", "replace")[:_HEAD_OF_CARD])
    except OSError:
        return ""
    return match.group(1) if match else ""


def converted(folder: Path) -> str:
    """``tokenizer.json`` made by transformers from an older format. Raises ModelNotFound where it
    cannot be."""
    from transformers import AutoTokenizer

    try:
        slow = AutoTokenizer.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
        return str(slow.backend_tokenizer.to_str())
    except Exception as error:
        raise ModelNotFound(
            f"{folder} holds no tokenizer.json that can be read; fetch the whole model"
        ) from error
