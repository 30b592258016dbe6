"""Paths that name no model folder, and folders without a config, one of each kind."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

from breaking import Broken, Kinds, sound, weights, without
from text_cases import data_beside

DATA = data_beside(__file__)

WRITTEN: dict[str, tuple[str, str, str]] = DATA["WRITTEN"]
"""What a user writes, what the cause names, and the remedy."""

PATHS = Kinds()
for name, (written, *said) in WRITTEN.items():
    PATHS.append(Broken(name, lambda _, written=written: written, *said))

# Paths


@PATHS.add("nothing of that name", "config.json and *.safetensors")
def missing_folder(folder: Path) -> str:
    return str(folder / "nothing")


@PATHS.add("an address, not a path", "write /")
def file_address(folder: Path) -> str:
    return Path(sound(folder / "a model")).as_uri()


@PATHS.add("quotation marks", "write /")
def quoted_path(folder: Path) -> str:
    return f'"{sound(folder / "model")}"'


@PATHS.add("blanks around it", "write /")
def blanks_around(folder: Path) -> str:
    return sound(folder / "model") + " "


@PATHS.add("cannot be opened", "give a GGUF file, or a folder")
def endless_name(folder: Path) -> str:
    return "/" + "x" * 5000


@PATHS.add("a link to", "fix the link")
def link_to_nothing(folder: Path) -> str:
    (folder / "link").symlink_to(folder / "gone")
    return str(folder / "link")


@PATHS.add("cannot be opened (Too many levels", "give a GGUF file, or a folder")
def link_to_itself(folder: Path) -> str:
    (folder / "link").symlink_to(folder / "link")
    return str(folder / "link")


# Files in place of folders


@PATHS.add("names no architecture", "fetch the file again")
def gguf_file(folder: Path) -> str:
    (folder / "model.Q4_K_M.gguf").write_bytes(b"GGUF\x03\0\0\0" + bytes(64))
    return str(folder / "model.Q4_K_M.gguf")


@PATHS.add("names no architecture", "fetch the file again")
def gguf_file_of_another_name(folder: Path) -> str:
    (folder / "sha256-0123").write_bytes(b"GGUF\x03\0\0\0" + bytes(64))
    return str(folder / "sha256-0123")


@PATHS.add("the weights file of a model", "give its folder")
def weights_file_of_a_folder(folder: Path) -> str:
    return sound(folder / "model") + "/model.safetensors"


@PATHS.add("without the config.json", "fetch the whole model")
def weights_file_alone(folder: Path) -> str:
    (folder / "model.safetensors").write_bytes(weights())
    return str(folder / "model.safetensors")


@PATHS.add("pickled weights", "*.safetensors")
def pickled_file(folder: Path) -> str:
    (folder / "pytorch_model.bin").write_bytes(b"PK\x03\x04" + bytes(64))
    return str(folder / "pytorch_model.bin")


@PATHS.add("an archive", "unpack it")
def archive(folder: Path) -> str:
    with zipfile.ZipFile(folder / "model.zip", "w") as opened:
        opened.writestr("config.json", "{}")
    return str(folder / "model.zip")


@PATHS.add("one file of a model", "give its folder")
def config_file(folder: Path) -> str:
    return sound(folder / "model") + "/config.json"


@PATHS.add("a file, not the folder", "give a GGUF file, or a folder")
def text_file(folder: Path) -> str:
    (folder / "notes.txt").write_text("a model\n")
    return str(folder / "notes.txt")


# Folders that hold no model


@PATHS.add("is empty", "fetch the model into it")
def empty_folder(folder: Path) -> str:
    (folder / "model").mkdir()
    return str(folder / "model")


@PATHS.add("other files", "the folder of a model")
def source_folder(folder: Path) -> str:
    (folder / "main.py").write_text("pass\n")
    return str(folder)


@PATHS.add("no model itself", "/qwen")
def folder_of_models(folder: Path) -> str:
    sound(folder / "qwen")
    return str(folder)


@PATHS.add("GGUF files", "/model.gguf")
def folder_of_gguf(folder: Path) -> str:
    (folder / "model.gguf").write_bytes(b"GGUF" + bytes(64))
    return str(folder)


@PATHS.add("no config.json", "fetch the whole model")
def no_config(folder: Path) -> str:
    return without(folder, "config.json")


@PATHS.add("an adapter (LoRA)", "merge it")
def adapter(folder: Path) -> str:
    (folder / "adapter_config.json").write_text("{}")
    (folder / "adapter_model.safetensors").write_bytes(weights())
    return str(folder)


@PATHS.add("makes pictures", "another model")
def picture_model(folder: Path) -> str:
    (folder / "model_index.json").write_text("{}")
    return str(folder)


@PATHS.add("a store of Ollama", "redraft models")
def ollama_store(folder: Path) -> str:
    (folder / "manifests").mkdir()
    (folder / "blobs").mkdir()
    return str(folder)


@PATHS.add("weights for ONNX", "*.safetensors")
def onnx_folder(folder: Path) -> str:
    model = without(folder, "model.safetensors")
    (folder / "model" / "model.onnx").write_bytes(b"onnx")
    return model


@PATHS.add("not fetched to its end", "fetch the whole model")
def unfinished_fetch(folder: Path) -> str:
    model = without(folder, "model.safetensors")
    (folder / "model" / "model.safetensors.incomplete").write_bytes(b"x")
    return model


@PATHS.add("not fetched to its end", "hf download some/model")
def unfinished_id(folder: Path) -> str:
    hub = Path(os.environ["HF_HUB_CACHE"])
    (hub / "models--some--model" / "blobs").mkdir(parents=True, exist_ok=True)
    return "some/model"
