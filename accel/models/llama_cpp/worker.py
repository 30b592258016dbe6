"""The process that llama.cpp runs in, started by ``process.py``. Frames are a length of four bytes,
then a pickled tuple. What goes wrong with calls without an answer is the answer of the next."""

from __future__ import annotations

import os
import pickle
import re
import struct
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import numpy as np

from accel.files.model_options import ModelOptions
from accel.models.llama_cpp.context import KV_BYTES, Context, LibraryFailed
from accel.models.llama_cpp.devices import Device, layers_that_fit, used_gpus
from accel.models.llama_cpp.library import chosen_flash_attention, last_complaints, load_library
from accel.models.llama_cpp.line_context import LineContext
from accel.models.llama_cpp.tree_context import TreeContext

_LENGTH = struct.Struct("<I")


def write_frame(stream: IO[bytes], value: object) -> None:
    """Send a value."""
    stream.write(frame_of(value))
    stream.flush()


def frame_of(value: object) -> bytes:
    """A value as it is sent."""
    data = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    return _LENGTH.pack(len(data)) + data


def read_frame(stream: IO[bytes]) -> Any:
    """Return the next value. Raises EOFError when the other end is gone."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        raise EOFError
    data = stream.read(_LENGTH.unpack(head)[0])
    return pickle.loads(data)


def _not_loaded(path: str, complaints: str) -> str:
    if unknown := re.search("unknown model architecture: '([^']*)'", complaints):
        return (
            f"{path} is built as {unknown[1]!r}, which this llama.cpp does not know; take a newer "
            "one, or use another model"
        )
    return (
        f"llama.cpp does not load {path}: {complaints}; fetch the file again, or use another model"
    )


class Worker:
    """One model and its contexts, by number."""

    def __init__(self, path: str, options: ModelOptions) -> None:
        self._library, self._options = load_library(), options
        self._gpus = used_gpus(self._library.devices)
        params = self._library.model_params()
        self._gpu_layers = gpu_layers(Path(path), self._gpus, options)
        params.n_gpu_layers = self._gpu_layers
        self._model = self._library.llama_model_load_from_file(path.encode(), params)
        if not self._model:
            raise LibraryFailed(_not_loaded(path, last_complaints()))
        for name, what in _REFUSED.items():
            if getattr(self._library, name)(self._model):
                raise LibraryFailed(f"{path} is {what}; use a causal language model")
        goes_on = self._library.llama_model_is_recurrent, self._library.llama_model_is_hybrid
        self._is_recurrent = any(each(self._model) for each in goes_on)
        self.contexts: dict[int, Context] = {}
        """Lines of text."""
        self._try_options()

    def _try_options(self) -> None:
        """Make a context as all later ones are made. Raises LibraryFailed where it cannot be."""
        try:
            tried = self._new_context(TRIED_TOKENS, self._options)
            self._rewinds = tried.rewinds
            tried.close()
        except MemoryError as error:
            if self._options.kv_type == "f16":
                raise
            self._new_context(TRIED_TOKENS, replace(self._options, kv_type="f16")).close()
            raise LibraryFailed(
                f"this model's keys and values cannot be kept in int8 ({last_complaints()}); set "
                "redraft.model.kvType to f16"
            ) from error

    def _new_context(self, capacity: int, options: ModelOptions) -> Context:
        kind = LineContext if self._is_recurrent else TreeContext
        return kind(self._library, self._model, capacity, options)

    def about(self) -> dict[str, Any]:
        """Return what the library says of the model and of itself."""
        library = self._library
        vocabulary = library.llama_model_get_vocab(self._model)
        return {
            "vocabulary": library.llama_vocab_n_tokens(vocabulary),
            "positions": library.llama_model_n_ctx_train(self._model),
            "ends": [
                token
                for token in range(library.llama_vocab_n_tokens(vocabulary))
                if library.llama_vocab_is_eog(vocabulary, token)
            ],
            "is_recurrent": self._is_recurrent,
            "rewinds": self._rewinds,
            "layers": library.llama_model_n_layer(self._model),
            "gpu_layers": self._gpu_layers,
            "gpus": [str(gpu) for gpu in self._gpus],
            "flash_attention": chosen_flash_attention(),
            "system": f"{library.version} {library.llama_print_system_info().decode()}",
        }

    def open(self, number: int, capacity: int) -> None:
        """A new line of text."""
        self.contexts[number] = self._new_context(capacity, self._options)

    def close(self, number: int) -> None:
        """A line of text is over."""
        if context := self.contexts.pop(number, None):
            context.close()

    def reserve(self, number: int, rows: int) -> tuple[int, int]:
        """See ``Context.reserve``; its capacity, and the bytes that it holds."""
        context = self.contexts[number]
        context.reserve(rows)
        return context.capacity, context.nbytes

    def forward(self, number: int, tokens: bytes, parents: bytes, first: int, meant: int) -> Any:
        rows, above = (np.frombuffer(data, np.int32) for data in (tokens, parents))
        return self.contexts[number].forward(rows, above, first, meant)


CALLS, OF_LINES = {"open", "close", "reserve", "forward"}, {"row", "commit", "trim"}
TRIED_TOKENS = 64
_REFUSED = {
    "llama_model_has_encoder": "a model with an encoder",
    "llama_model_is_diffusion": "a model that writes by diffusion",
}
UNANSWERED = frozenset({"close", "commit"})


def gpu_layers(path: Path, gpus: list[Device], options: ModelOptions) -> int:
    """Return the number of layers of a model for GPUs."""
    if not gpus:
        return 0
    if options.gpu_layers != "auto":
        return options.gpu_layers
    return layers_that_fit(path, gpus, KV_BYTES[options.kv_type])


def examine() -> dict[str, Any]:
    """Return facts of the library without a model. Raises LibraryRefused."""
    library = load_library()
    return {
        "path": str(library.file.path),
        "source": library.file.source,
        "version": library.version,
        "layout": library.layout,
        "devices": [str(device) for device in library.devices],
    }


def main() -> None:
    """Serve until standard input ends."""
    requests = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    # What the library prints must not get between answers.
    os.dup2(2, 1)
    worker: Worker | None = None
    failed: tuple[str, str] | None = None
    while True:
        try:
            name, *arguments = read_frame(requests)
        except EOFError:
            return
        try:
            if name == "examine":
                result: Any = examine()
            elif name == "load":
                worker = Worker(*arguments)
                result = worker.about()
            else:
                assert worker is not None
                assert name in CALLS | OF_LINES, name
                owner = worker.contexts[arguments.pop(0)] if name in OF_LINES else worker
                result = getattr(owner, name)(*arguments)
            problem = None
        except Exception as error:
            result, problem = None, (type(error).__name__, str(error))
        if name in UNANSWERED:
            failed = failed or problem
            continue
        problem, failed = failed or problem, None
        write_frame(answers, (problem, result))


if __name__ == "__main__":
    main()
