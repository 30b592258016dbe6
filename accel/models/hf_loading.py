"""Modules of transformers, read from a folder without running its code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import nn

from accel.errors import BrokenModel, OutOfMemory, UnsupportedModel
from accel.files.adaptive_tokens import read_adaptive_tokens
from accel.files.folder_architecture import LEFT_OVER, named_ends
from accel.files.model_folder import check_folder
from accel.models import tree_attention as attention
from accel.models.torch_forward import is_out_of_memory


def load_module(
    folder: Path, dtype: torch.dtype, device: torch.device, implementation: str = attention.NAME
) -> nn.Module:
    """Return the module in evaluation mode. Raises BrokenModel, UnsupportedModel or OutOfMemory."""
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
    except Exception as error:
        if is_out_of_memory(error):
            raise OutOfMemory(f"no room for {folder} on {device}; use a smaller model") from error
        line = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise BrokenModel(f"{folder} does not load ({line[:200]})", "fetch it again") from error
    missing = sorted(loading.get("missing_keys") or ())
    mismatched = sorted(str(key) for key in loading.get("mismatched_keys") or ())
    if missing or mismatched:
        raise BrokenModel(
            f"{folder} lacks weights such as {(missing or mismatched)[0]}", "fetch the whole model"
        )
    unexpected = sorted(map(str, loading.get("unexpected_keys") or ()))
    if unused := [name for name in unexpected if not name.endswith(LEFT_OVER)]:
        raise UnsupportedModel(
            f"{folder} has weights that its model does not take, such as {unused[0]}",
            "use another model",
        )
    module.requires_grad_(False)
    return module


def end_tokens(module: Any) -> frozenset[int]:
    """Return the ids that end a text, from the generation config and the config."""
    text = module.config.get_text_config()
    ids = [
        getattr(config, "eos_token_id", None)
        for config in (getattr(module, "generation_config", None), text)
    ]
    name = getattr(module.config, "name_or_path", "") or "the model"
    return named_ends(ids, module.get_output_embeddings().weight.shape[0], name)


def add_adaptive_tokens(module: Any, path: Path) -> tuple[int, ...]:
    """Have a module read the adaptive tokens that lie beside its weights; returns their ids."""
    embedding: Any = module.get_input_embeddings()
    more = read_adaptive_tokens(path, embedding.weight.shape[1])
    if more is None:
        return ()
    weight = torch.cat([embedding.weight.data, torch.from_numpy(more).to(embedding.weight)])
    extended = nn.Embedding.from_pretrained(weight)
    extended.train(module.training)
    module.set_input_embeddings(extended)
    return tuple(range(len(embedding.weight), len(weight)))
