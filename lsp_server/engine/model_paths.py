"""Where models are and whether they can be loaded. Loads no torch."""

from __future__ import annotations

from pathlib import Path

from lsp_server.errors import ModelUnavailable


def model_folder(model: str | Path | None) -> Path:
    """The folder of a model, or its GGUF file. Raises ModelUnavailable, also where none is
    named."""
    from accel.errors import ModelError
    from accel.model_path import find_folder

    try:
        return find_folder(model)
    except ModelError as error:
        raise ModelUnavailable(error.cause, error.remedy) from error


def tokenizer_folder(model: str | Path | None) -> Path:
    """The folder with the ``tokenizer.json`` of a model: its own, or, for a GGUF file, one that was
    made of its vocabulary. Raises ModelUnavailable."""
    from accel.errors import ModelError
    from accel.model_folder import check_folder
    from accel.models.gguf import folder
    from accel.models.gguf.file import is_gguf

    found = model_folder(model)
    try:
        if is_gguf(found):
            return folder.tokenizer_folder(found)
        if not (found / "tokenizer.json").is_file():
            check_folder(found)
        return found
    except ModelError as error:
        raise ModelUnavailable(error.cause, error.remedy) from error


def check_model(model: str | Path | None) -> None:
    """Look at a model's path and headers. Raises ModelUnavailable for what cannot be loaded."""
    from accel.errors import ModelError
    from accel.model_folder import check_folder

    try:
        check_folder(model_folder(model))
    except ModelError as error:
        raise ModelUnavailable(error.cause, error.remedy) from error


def files_state(*models: str) -> tuple[object, ...]:
    """Changes whenever a file of one of the models does."""
    if not any(models):
        return ()
    from accel.model_path import state_of

    return tuple(state_of(model) for model in models)
