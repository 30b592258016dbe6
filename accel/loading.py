"""From a folder (or a model id that was asked for) to a module of transformers, safely."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from torch import nn

from accel import attention
from accel.errors import BrokenModel, ModelNotFound, OutOfMemory, UnsupportedModel

DEFAULT_MODEL = Path(__file__).parent / "default_model"

_FILES = ["*.json", "*.safetensors", "*.jinja", "tokenizer.model", "*.txt"]


def find_folder(model: str | Path | None, *, download: bool = False) -> Path:
    """Folder of a model: the embedded one for None, a folder, or a hub id already on this machine.

    The network is used only with ``download``. Raises ModelNotFound.
    """
    if model is None:
        model = DEFAULT_MODEL
    folder = Path(model).expanduser()
    if folder.is_dir():
        return folder
    name = str(model)
    if isinstance(model, Path) or name.startswith((".", "/", "~")) or name.count("/") != 1:
        raise ModelNotFound(f"no model folder {name}; give a folder with config.json and weights")
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(name, local_files_only=not download, allow_patterns=_FILES))
    except Exception as error:
        advice = "check the name and the network" if download else "fetch it with `hf download`"
        raise ModelNotFound(f"model {name} is not on this machine; {advice}") from error


def check_folder(folder: Path) -> dict[str, Any]:
    """The parsed ``config.json`` of a folder that can be loaded without running foreign code.

    Raises BrokenModel or UnsupportedModel.
    """
    file = folder / "config.json"
    try:
        config = json.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        raise BrokenModel(f"{folder} has no config.json; fetch the whole model") from None
    except (OSError, ValueError) as error:
        raise BrokenModel(f"{file} cannot be read ({error}); fetch it again") from error
    if not isinstance(config, dict) or not isinstance(config.get("model_type"), str):
        raise BrokenModel(f"{file} names no model_type; fetch it again")
    if not _is_known(config["model_type"]):
        if "auto_map" in config:
            raise UnsupportedModel(f"{folder} needs its own code, which is never run; use another")
        raise UnsupportedModel(
            f"{folder}: transformers knows no causal LM {config['model_type']!r}; update it or "
            "use another model"
        )
    if not any(folder.glob("*.safetensors")):
        if any(folder.glob("*.bin")) or any(folder.glob("*.pt")) or any(folder.glob("*.pth")):
            raise UnsupportedModel(
                f"{folder} holds pickled weights only, which are never loaded; convert them to "
                "safetensors"
            )
        raise BrokenModel(f"{folder} has no *.safetensors; fetch the whole model")
    return config


def _is_known(model_type: str) -> bool:
    """Whether transformers has such a causal language model. It is not asked for the embedded one's
    type: its import takes longer than all else at a start."""
    if model_type == "llama":
        return True
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

    return model_type in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES


def load_module(
    folder: Path, dtype: torch.dtype, device: torch.device, implementation: str = attention.NAME
) -> nn.Module:
    """The module in evaluation mode. Raises BrokenModel, UnsupportedModel or OutOfMemory."""
    from transformers import AutoModelForCausalLM
    from transformers.utils.logging import disable_progress_bar

    check_folder(folder)
    attention.register()
    disable_progress_bar()
    try:
        module, loading = AutoModelForCausalLM.from_pretrained(
            folder,
            dtype=dtype,
            trust_remote_code=False,
            use_safetensors=True,
            local_files_only=True,
            attn_implementation=implementation,
            output_loading_info=True,
        )
        module = module.to(device).eval()
    except (MemoryError, torch.OutOfMemoryError) as error:
        raise OutOfMemory(f"no room for {folder} on {device}; use a smaller model") from error
    except Exception as error:
        if is_out_of_memory(error):
            raise OutOfMemory(f"no room for {folder} on {device}; use a smaller model") from error
        line = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise BrokenModel(f"{folder} does not load ({line[:200]}); fetch it again") from error
    missing = sorted(loading.get("missing_keys") or ())
    mismatched = sorted(str(key) for key in loading.get("mismatched_keys") or ())
    if missing or mismatched:
        raise BrokenModel(
            f"{folder} lacks weights such as {(missing or mismatched)[0]}; fetch the whole model"
        )
    module.requires_grad_(False)
    return module


def end_tokens(module: Any) -> frozenset[int]:
    """Ids that end a text, from the generation config and the config."""
    found: set[int] = set()
    for config in (getattr(module, "generation_config", None), module.config.get_text_config()):
        ids = getattr(config, "eos_token_id", None)
        found.update(ids if isinstance(ids, list) else [] if ids is None else [ids])
    return frozenset(found)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error of torch says that the device is full."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    text = str(error).lower()
    return isinstance(error, RuntimeError) and (
        "out of memory" in text or "can't allocate memory" in text or "not enough memory" in text
    )
