"""Fields of similar servers that this one refuses by name, because they would change the text.
Others are passed over.

Sources: the references of OpenAI's API, llama.cpp's ``tools/server/README.md``, vLLM, SGLang, Text
Generation Inference, text-generation-webui and Mistral.
"""

from __future__ import annotations

import re
from typing import Any

from lsp_server.team.http_server.errors import invalid
from lsp_server.team.http_server.fields import Fields

_ONLY: dict[str, tuple[Any, ...]] = {
    # How many answers, and of what
    "n": (1,),
    "n_cmpl": (1,),
    "best_of": (1,),
    "echo": (False,),
    "suffix": ("",),
    "audio": (),
    "modalities": (["text"],),
    "image_data": ([],),
    "images": ([],),
    "multimodal_data": ([],),
    "prompt_embeds": (),
    "prompt_logprobs": (),
    "return_tokens_as_token_ids": (False,),
    "include_stop_str_in_output": (False,),
    "no_stop_trim": (False,),
    "decoder_input_details": (False,),
    "return_full_text": (False,),
    # Tools
    "functions": ([],),
    "function_call": ("none", "auto"),
    "web_search_options": (),
    "plugins": ([],),
    # How a prompt is made
    "chat_template": ("",),
    "chat_template_kwargs": ({},),
    "add_generation_prompt": (True,),
    "continue_final_message": (False,),
    "documents": ([],),
    "truncate_prompt_tokens": (),
    "truncate": (),
    "transforms": ([],),
    "system": ("",),
    "template": ("",),
    "context": ([],),
    "raw": (False,),
    "options": ({},),
    "safe_prompt": (False,),
    "prompt_mode": (),
    # Thinking
    "reasoning": ({},),
    "reasoning_effort": (),
    "reasoning_budget": (-1,),
    "thinking_budget_tokens": (-1,),
    "thinking": ({},),
    "think": (),
    "enable_thinking": (),
    "thinking_forced_open": (False,),
    "verbosity": ("medium",),
    # The form of an answer
    "response_format": ({"type": "text"},),
    "format": ("",),
    "json": ({}, ""),
    "ebnf": ("",),
    "structural_tag": ("",),
    # How tokens are chosen
    "min_keep": (0, 1),
    "typical_p": (1,),
    "typ_p": (1,),
    "typical": (1,),
    "tfs_z": (1,),
    "tfs": (1,),
    "top_a": (0,),
    "top_n_sigma": (0, -1),
    "nsigma": (0,),
    "adaptive_target": (-1, 0),
    "dynatemp_range": (0,),
    "dynamic_temperature": (False,),
    "smoothing_factor": (0,),
    "dry_multiplier": (0,),
    "xtc_probability": (0,),
    "mirostat": (0,),
    "mirostat_mode": (0,),
    "epsilon_cutoff": (0,),
    "eta_cutoff": (0,),
    "guidance_scale": (1,),
    "negative_prompt": ("",),
    "penalty_alpha": (0,),
    "penalize_nl": (True,),
    "length_penalty": (1,),
    "encoder_repetition_penalty": (1,),
    "rep_pen": (1,),
    "no_repeat_ngram_size": (0,),
    "use_beam_search": (False,),
    "num_beams": (1,),
    "early_stopping": (False,),
    "do_sample": (False,),
    "watermark": (False,),
    "lora": ([],),
    "lora_path": ("",),
    "lora_name": ("",),
    "adapter_id": ("",),
    "vllm_xargs": ({},),
    "custom_params": ({},),
    # Where a text ends
    "min_tokens": (0,),
    "min_new_tokens": (0,),
    "min_length": (0,),
    "max_new_tokens": (),
    "max_length": (),
    "stop_sequences": ([],),
    "stop_sequence": ([],),
    "stopping_strings": ([],),
    "forced_eos_token_id": (),
}
"""Fields that may have these values alone, which are those of not sending them."""

_HARMLESS = frozenset(
    {
        # They say how something is done that is not asked for.
        *("dry_base", "dry_allowed_length", "dry_sequence_breakers", "dry_penalty_last_n"),
        *("xtc_threshold", "mirostat_tau", "mirostat_eta", "dynatemp_exponent"),
        *("guided_decoding_backend", "guided_whitespace_pattern", "grammar_lazy"),
        *("grammar_triggers", "sampling_params_version", "post_sampling_probs"),
    }
)

_SUSPICIOUS = re.compile(
    r"grammar|schema|regex|guided|structured|constrain|mirostat|typical|penal|bias|sampl|beam"
    r"|^dry_|^xtc_|temp_|temperature|cutoff|guidance|^bans?_|_bans?$|banned|bad_words|allowed_token"
    r"|suppress|logits_|logit_|repeat|repetition|^stop|_stop$|^force_|eos|^lora|control_vector"
)
"""Names that say of fields of servers not known here that they change what is written."""

_NOTHING: tuple[Any, ...] = (False, "", [], {}, 0)


def refuse_the_rest(fields: Fields) -> None:
    """Raises RequestRefused where something is asked for that no route has taken and that would
    change what is written."""
    _refuse_tools(fields)
    for name in fields.left():
        value = fields.take(name)
        if value is None or name in _HARMLESS:
            continue
        only = _ONLY.get(name, _NOTHING if _SUSPICIOUS.search(name.lower()) else None)
        if only is not None and value not in only:
            raise invalid(f"{name[:60]} is not supported; leave it out")


def _refuse_tools(fields: Fields) -> None:
    """Tools that may not be called change nothing; those that may be are not known to the model."""
    choice = fields.take("tool_choice")
    if choice not in (None, "none", "auto"):
        raise invalid("tool_choice is not supported; leave it out")
    if fields.take("tools", []) != [] and choice != "none":
        raise invalid('tools is not supported; leave it out, or send tool_choice "none"')
