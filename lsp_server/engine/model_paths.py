"""Locations of models, and checks that they can be loaded. Loads no torch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from lsp_server.shared.errors import ModelUnavailable

if TYPE_CHECKING:
    from accel.models.model_file import ModelFile
    from accel.text.tokenizer import Tokenizer


@contextmanager
def _or_unavailable() -> Iterator[None]:
    from accel.errors import ModelError

    try:
        yield
    except ModelError as error:
        raise ModelUnavailable(error.cause, error.remedy) from error


def model_folder(model: str | Path | None) -> Path:
    """Return the folder of a model, or its GGUF file. Raises ModelUnavailable, also without any."""
    from accel.files.model_path import find_model_path

    with _or_unavailable():
        return find_model_path(model)


def model_file_of(model: str | Path | None) -> ModelFile:
    """Return the model's file or folder, opened once in a process. Raises ModelUnavailable."""
    from accel.models.model_file import model_file

    with _or_unavailable():
        return model_file(model_folder(model))


def tokenizer_of(model: str | Path | None) -> Tokenizer:
    """Return the tokenizer of a model, without the model. Raises ModelUnavailable."""
    from accel.errors import ModelError

    opened = model_file_of(model)
    with _or_unavailable():
        try:
            return opened.tokenizer
        except (ModelError, ModuleNotFoundError):
            # What is wrong with the whole says more.
            opened.check()
            raise


def check_model(model: str | Path | None) -> None:
    """Look at a model's path and headers. Raises ModelUnavailable for what cannot be loaded."""
    with _or_unavailable():
        model_file_of(model).check()


def files_state(*models: str) -> tuple[object, ...]:
    """Return changes whenever a file of one of the models does."""
    if not any(models):
        return ()
    from accel.files.model_path import state_of

    return tuple(state_of(model) for model in models)
