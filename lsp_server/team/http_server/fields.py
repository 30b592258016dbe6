"""Bodies of requests as typed objects: wrong types and wild numbers are refused, and so are unknown
fields that would change what is written."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

import msgspec
from msgspec import Meta

from lsp_server.team.http_server.errors import invalid

Body = TypeVar("Body", bound=msgspec.Struct)
Flag: TypeAlias = bool | Literal[0, 1]
Count: TypeAlias = Annotated[int, Meta(ge=0, le=1 << 30)]

_WORDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "a text",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
}
_ONE = re.compile(
    "typical_p|typ_p|typical|tfs_z|tfs|guidance_scale|length_penalty|encoder_repetition_penalty"
    "|rep_pen|num_beams|min_keep"
)
"""Fields of which 1 changes nothing."""
_CHANGES = re.compile(
    r"grammar|schema|regex|guided|structured|structural|constrain|mirostat|typical|penal|bias|sampl"
    r"|beam|^dry_|^xtc_|temp_|temperature|cutoff|guidance|^bans?_|_bans?$|banned|bad_words"
    r"|allowed_token|suppress|logits_|logit_|repeat|repetition|^stop|_stop|^force_|eos|^lora"
    r"|control_vector|nsigma|n_sigma|^min_|^max_(new_|length)|^truncat|^top_a$|^tfs|^typ_p$|^rep_pen"
    r"|^(echo|audio|images?|image_data|multimodal_data|modalities|prompt_embeds|prompt_logprobs|ebnf"
    r"|return_full_text|decoder_input_details|functions|function_call|web_search_options|plugins"
    r"|chat_template|continue_final_message|documents|transforms|system|template|context|raw|options"
    r"|format|json|dynatemp_range|smoothing_factor|adaptive_target|negative_prompt|early_stopping"
    r"|num_beams|do_sample|watermark|adapter_id|vllm_xargs|custom_params|return_tokens_as_token_ids"
    r"|suffix|n|tools|tool_choice|best_of|n_cmpl|previous_response_id)$"
)
"""Names that say, of fields of any server, that they change what is written. Sources: references of
OpenAI's API, llama.cpp, vLLM, SGLang, Text Generation Inference, text-generation-webui, Mistral."""
_HARMLESS = re.compile(
    r"dry_(base|allowed_length|sequence_breakers|penalty_last_n)|xtc_threshold|mirostat_(tau|eta)"
    r"|dynatemp_exponent|guided_(decoding_backend|whitespace_pattern)|grammar_(lazy|triggers)"
    r"|sampling_params_version|post_sampling_probs"
)
"""They say how something is done that is not asked for."""


def read_fields(kind: type[Body], values: dict[str, Any]) -> Body:
    """Return ``values`` as ``kind``; a null counts as a field that was not sent, and 16.0 as 16.
    Raises RequestRefused."""
    sent = {
        name: int(value) if isinstance(value, float) and value.is_integer() else value
        for name, value in values.items()
        if value is not None
    }
    try:
        fields = msgspec.convert(sent, kind)
    except msgspec.ValidationError as error:
        raise invalid(_in_words(str(error))) from None
    except UnicodeEncodeError:
        raise invalid("a name, or a text in place of a number, has half a character") from None
    _refuse_unknown(kind, sent)
    return fields


def _in_words(message: str) -> str:
    """Return msgspec's message as one of ours: ``max_tokens is a whole number, not a text``."""
    what, _, path = message.partition(" - at `$")
    path = path.strip("`.").replace("[...]", "")
    if (named := re.search(r"(missing|unknown).*field `(.*)`$", what)) is not None:
        name = ".".join(filter(None, (path, named[2][:60])))
        return f"{name} is {'missing' if named[1] == 'missing' else 'not known here'}"
    expected, _, actual = what.removeprefix("Expected ").partition(", got ")
    if expected == what:
        return f"{path}: {what}"
    return f"{path} is {_types(expected)}" + (f", not {_types(actual)}" if actual else "")


def _types(text: str) -> str:
    def words(match: re.Match[str]) -> str:
        names = [name for name in match[1].split(" | ") if name != "null"]
        return " or ".join(_WORDS.get(name, name) for name in names or ["null"])

    return re.sub(r"`([^`]*)`", words, text)


def _refuse_unknown(kind: type[msgspec.Struct], values: dict[str, Any]) -> None:
    """Raise RequestRefused if ``values`` has a field that ``kind`` lacks and that would change what
    is written."""
    for name in sorted(values.keys() - set(kind.__struct_fields__)):
        if _changes(name, values[name]):
            raise invalid(f"{name[:60]} is not supported; leave it out")


def _changes(name: str, value: Any) -> bool:
    """Return if a field of this ``name`` changes what is written by this ``value``."""
    if value in ("", [], {}, ["text"], "none", "auto") or value is False:
        return False
    is_number = type(value) in (int, float)
    if is_number and (value in (0, -1) or (value == 1 and _ONE.fullmatch(name))):
        return False
    return bool(_CHANGES.search(name.lower())) and not _HARMLESS.fullmatch(name)
