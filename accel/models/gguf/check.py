"""Whether a GGUF file holds a model that can be loaded, judged from its header alone."""

from __future__ import annotations

from pathlib import Path

from accel.errors import BrokenModel, UnsupportedModel
from accel.models.gguf.architecture import read_architecture
from accel.models.gguf.file import GgufFile
from accel.models.gguf.metadata import AGAIN
from accel.models.gguf.rotation import read_rotation
from accel.models.gguf.vocabulary import read_vocabulary
from accel.models.gguf.weights import GgufWeights


def is_known(path: Path) -> bool:
    """Whether a sound file is built like the models that our own forward computes. Raises
    BrokenModel."""
    with GgufFile(path) as file:
        try:
            architecture = read_architecture(file)
            GgufWeights(file, architecture)
            read_rotation(file, architecture)
        except UnsupportedModel:
            return False
    return True


def check_file_for_llama_cpp(path: Path) -> None:
    """Whether the header of a file, whatever its architecture, and its vocabulary can be read: all
    that we need of a model that llama.cpp computes. Raises as ``check_file``."""
    with GgufFile(path) as file:
        read_vocabulary(file.metadata)


def check_file(path: Path) -> None:
    """Raises ModelNotFound, BrokenModel or UnsupportedModel for what cannot be loaded."""
    with GgufFile(path) as file:
        architecture = read_architecture(file)
        GgufWeights(file, architecture)
        read_rotation(file, architecture)
        tokens = len(read_vocabulary(file.metadata).tokens)
    if tokens > architecture.vocabulary:
        raise BrokenModel(
            f"{path} has {tokens} tokens and the embeddings of {architecture.vocabulary}", AGAIN
        )
