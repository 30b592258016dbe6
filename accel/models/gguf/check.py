"""Whether a GGUF file holds a model that can be loaded, judged from its header alone."""

from __future__ import annotations

from pathlib import Path

from accel.errors import BrokenModel
from accel.models.gguf.architecture import read_architecture
from accel.models.gguf.file import GgufFile
from accel.models.gguf.metadata import AGAIN
from accel.models.gguf.rotation import read_rotation
from accel.models.gguf.vocabulary import read_vocabulary
from accel.models.gguf.weights import Weights
from accel.weights_file import check_not_stand_in


def check_file(path: Path) -> None:
    """Raises ModelNotFound, BrokenModel or UnsupportedModel for what cannot be loaded."""
    try:
        with path.open("rb") as stream:
            check_not_stand_in(path, stream.read(512))
    except OSError as error:
        raise BrokenModel(f"{path} cannot be read ({error.strerror})", "see who may read it") from (
            error
        )
    with GgufFile(path) as file:
        architecture = read_architecture(file)
        Weights(file, architecture)
        read_rotation(file, architecture)
        tokens = len(read_vocabulary(file.metadata).tokens)
    if tokens > architecture.vocabulary:
        raise BrokenModel(
            f"{path} has {tokens} tokens and the embeddings of {architecture.vocabulary}", AGAIN
        )
