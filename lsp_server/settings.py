"""Every setting: its default, its documentation and what values it takes, in one dataclass tree.

Clients send the section ``redraft`` as JSON with camelCase names. What is unknown or unusable is
reported and its default is used; nothing that a client sends here can stop the server.
"""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

Tree = TypeVar("Tree")


def _setting(
    default: Any,
    doc: str,
    *,
    choices: tuple[Any, ...] = (),
    low: Any = None,
    high: Any = None,
    own: bool = False,
    secret: bool = False,
) -> Any:
    """A field with its documentation and the values it takes. One of the user's ``own`` settings
    cannot be set by a workspace; the value of a ``secret`` one is never shown."""
    metadata = _documented(doc, choices=choices, low=low, high=high)
    metadata |= {"own": own, "secret": secret}
    return field(default=default, metadata=metadata, repr=not secret)


def _documented(
    doc: str, *, choices: tuple[Any, ...] = (), low: Any = None, high: Any = None
) -> dict[str, Any]:
    return {"doc": doc, "choices": choices, "low": low, "high": high}


EMBEDDED = "embedded"
"""What settings called a model that earlier versions brought along. It reads as none."""
NOT_EMBEDDED = "there is no embedded model any more; `redraft models get default` fetches one"


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """Which model runs and how. A change starts another engine process."""

    path: str = _setting(
        "",
        "Folder, GGUF file or id of a causal language model; empty: what was chosen with "
        "`redraft models use`.",
    )
    dtype: str = _setting(
        "auto",
        "Number format of the model's weights. `int8` rounds them to eight bits when they are "
        "loaded, on a CPU; `auto` takes it there for models of 100 million parameters or more, and "
        "a GGUF file's weights as they are stored.",
        choices=("auto", "fp32", "bf16", "int8"),
    )
    device: str = _setting("auto", "Where the model runs.", choices=("auto", "cpu", "cuda", "mps"))
    threads: int = _setting(0, "Threads of the model; 0: the fastest number.", low=0, high=256)
    backend: str = _setting(
        "auto",
        "What computes a GGUF file: Redraft's own forward, or llama.cpp, where a library of it is; "
        "`auto` leaves those to it that the own one does not know, and those that it computes "
        "faster.",
        choices=("auto", "own", "llama-cpp"),
    )
    kv_type: str = _setting(
        "f16",
        "Number format of keys and values, which a model keeps of its text: 16 bits (`f16`; 32 "
        "where weights have so many), or eight, which take half the memory. Where what computes "
        "the model has no `int8`, the status says so.",
        choices=("f16", "int8"),
    )
    gpu_layers: int | Literal["auto"] = _setting(
        "auto",
        "How many of a model's layers llama.cpp computes on a GPU, where its library has one: a "
        "number, 0 for none, or as many as have room there (`auto`).",
        low=0,
        high=1 << 16,
        own=True,
    )
    flash_attention: str = _setting(
        "auto",
        "Flash attention in llama.cpp; `auto` leaves it to the library, which knows what a GPU "
        "can do.",
        choices=("auto", "on", "off"),
        own=True,
    )
    adaptive_tokens: bool = _setting(
        False,
        "Draft completions by the model's own adaptive tokens (SDSAT), where it learnt such with "
        "`redraft train adaptive`, instead of by what the workspace holds.",
    )
    disk_cache_megabytes: int = _setting(
        512,
        "What the model computed of documents of late is kept on disk, in at most so many "
        "megabytes, so that the first suggestion is quick after a restart, too; 0: nothing is. "
        "Never that of a document that may hold secrets.",
        low=0,
        high=1 << 20,
    )
    memory_megabytes: int = _setting(
        0,
        "What all models together may take of the main memory, in megabytes; 0: half of what is "
        "free. Where a second one does not fit beside the first, the idle one is unloaded.",
        low=0,
        high=1 << 24,
    )
    unload_after_minutes: float = _setting(
        30.0, "The model's memory is given back after so long without a request; 0: never.", low=0
    )


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """A server that has the model: the team's, or any that speaks OpenAI's protocol. The user's
    own settings alone count, never those of a workspace."""

    url: str = _setting(
        "",
        "Address of a server whose model answers in place of one on this machine, as "
        "`https://redraft.example.com`; `http` only on this machine. Empty: none. Also in the "
        "environment as `REDRAFT_SERVER_URL`. A workspace cannot set it.",
        own=True,
    )
    key: str = _setting(
        "",
        "The key that the server knows you by. Better in the environment as `REDRAFT_SERVER_KEY`, "
        "or where the editor keeps secrets. A workspace cannot set it.",
        own=True,
        secret=True,
    )
    model: str = _setting(
        "",
        "Which of a server's models answers, where it has several; empty: its first.",
        own=True,
    )
    fallback: str = _setting(
        "model",
        "What answers while the server cannot be reached: the model of `redraft.model.path` or the "
        "one that was chosen, where there is one (model), or nothing (none).",
        choices=("model", "none"),
        own=True,
    )


@dataclass(frozen=True, slots=True)
class CompletionSettings:
    """Suggestions while typing."""

    enabled: bool = _setting(True, "Offer suggestions while typing.")
    model: str = _setting(
        "", "The model of suggestions, where another one makes edits; empty: `redraft.model.path`."
    )
    menu: str = _setting(
        "auto",
        "Offer suggestions in the completion menu: for clients without inline completion (auto), "
        "always or never.",
        choices=("auto", "always", "never"),
    )
    multiline: str = _setting(
        "auto",
        "Suggest several lines: where a block may follow (auto), never or always.",
        choices=("auto", "never", "always"),
    )
    gate: str = _setting(
        "balanced",
        "How sure the model has to be of what is shown while one types: of longer and of more "
        "suggestions (eager), of those that are mostly right (balanced), or of few and short ones "
        "that are nearly always right (quiet); `off` shows all that it writes. At most one "
        "statement or block is shown. What is asked for by hand is shown in full, and so is what "
        "comes from a server that tells no probabilities.",
        choices=("eager", "balanced", "quiet", "off"),
    )
    max_tokens: int = _setting(64, "Longest suggestion in tokens.", low=1, high=2048)
    timeout_ms: int = _setting(
        10_000, "After so long a request is answered empty, with the reason.", low=50
    )
    prefetch: bool = _setting(True, "Compute the next suggestion once one is shown.")
    temperature: float = _setting(
        0.0, "Sampling temperature; 0: the likeliest text.", low=0, high=2
    )
    alternatives: int = _setting(3, "Suggestions computed when asked for by hand.", low=1, high=8)


@dataclass(frozen=True, slots=True)
class EditSettings:
    """Edits by instruction."""

    model: str = _setting(
        "", "The model of edits, where another one makes suggestions; empty: `redraft.model.path`."
    )
    max_tokens: int = _setting(4096, "Longest edit in tokens.", low=16, high=65536)
    temperature: float = _setting(
        0.0, "Sampling temperature; 0: the likeliest text.", low=0, high=2
    )
    instruction_comments: bool = _setting(
        True, "Offer to carry out comments like `# redraft: add type hints`."
    )
    presets: bool = _setting(True, "Offer ready-made instructions as code actions.")
    preset_instructions: list[str] = field(
        default_factory=list,
        metadata=_documented(
            "Further ready-made instructions, offered before those of the server."
        ),
    )
    timeout_seconds: float = _setting(300.0, "An edit that takes longer is stopped.", low=1)
    draft_model: str = _setting(
        "",
        "Folder, GGUF file or id of a small model with the tokenizer of the model of edits: it "
        "proposes the new text of edits, which the large one verifies. Empty: none.",
    )
    verification: str = _setting(
        "exact",
        "Which tokens of the draft model are taken: those that the large model writes itself "
        "(exact), or, where it is unsure, any of its likeliest (entropy, as in EfficientEdit; "
        "faster, but the text is not the large model's own).",
        choices=("exact", "entropy"),
    )
    entropy_k: int = _setting(
        3, "With `entropy`: how many of the likeliest tokens count at most.", low=2, high=50
    )


@dataclass(frozen=True, slots=True)
class NextEditSettings:
    """What follows from the edits that the user just made."""

    enabled: bool = _setting(
        True,
        "Propose next edits: other uses of a name that was renamed, calls of a function whose "
        "parameters changed, the third place of what was changed twice.",
    )
    display: str = _setting(
        "full",
        "How the editor shows a next edit: with its text (full), or as a sign beside the line "
        "until it is asked for (sign).",
        choices=("full", "sign"),
    )


@dataclass(frozen=True, slots=True)
class IndexSettings:
    """The datastore of the workspace, from which drafts are made."""

    enabled: bool = _setting(True, "Index the workspace.")
    exclude: list[str] = field(
        default_factory=list, metadata=_documented("Further paths to leave out, as in .gitignore.")
    )
    ignored_open_files: bool = _setting(
        False,
        "Complete other files from open ones that are ignored, too; otherwise the text of those "
        "counts for their own suggestions alone.",
    )
    max_file_kilobytes: int = _setting(1024, "Larger files are left out.", low=1)
    common: str = _setting(
        "auto",
        "The common datastore: built from the standard library and the workspace's packages "
        "(auto), none, or a folder made by `redraft corpus build`.",
    )


@dataclass(frozen=True, slots=True)
class ContextSettings:
    """What the model is told about other files."""

    cross_file: bool = _setting(True, "Put text of other files before the text at the cursor.")
    tokens: int = _setting(
        0,
        "At most so many tokens of other files; 0: as many as are computed in 60 ms.",
        low=0,
        high=16384,
    )
    prompt_seconds: float = _setting(
        1.5,
        "A prompt is as long as the model computes in so many seconds when nothing of it is known "
        "yet, by its measured speed.",
        low=0.1,
        high=60,
    )
    models: dict[str, int] = field(
        default_factory=dict,
        metadata=_documented("`context.tokens` by model, named as in `model.path`; 0: none."),
    )


@dataclass(frozen=True, slots=True)
class LogSettings:
    """The log of the daemon and its processes."""

    level: str = _setting("info", "What is logged.", choices=("error", "warning", "info", "debug"))
    source_text: bool = _setting(False, "Write source text and prompts to the log.")


@dataclass(frozen=True, slots=True)
class Settings:
    """The section ``redraft``."""

    enabled: bool = _setting(True, "Switch everything on or off.")
    model: ModelSettings = field(default_factory=ModelSettings)
    server: ServerSettings = field(default_factory=ServerSettings)
    completion: CompletionSettings = field(default_factory=CompletionSettings)
    edit: EditSettings = field(default_factory=EditSettings)
    next_edits: NextEditSettings = field(default_factory=NextEditSettings)
    index: IndexSettings = field(default_factory=IndexSettings)
    context: ContextSettings = field(default_factory=ContextSettings)
    log: LogSettings = field(default_factory=LogSettings)
    languages: dict[str, bool] = field(
        default_factory=dict,
        metadata=_documented(
            'Suggestions by language id, as `{"markdown": false}`; `*` stands for all others.'
        ),
    )
    folders: dict[str, bool] = field(
        default_factory=dict,
        metadata=_documented(
            "Switch folders on or off: absolute paths; the longest that fits counts."
        ),
    )

    @property
    def completion_model(self) -> str:
        """The path of the model of suggestions; empty: none."""
        return self.completion.model or self.model.path

    @property
    def edit_model(self) -> str:
        """The path of the model of edits; empty: none."""
        return self.edit.model or self.model.path

    @property
    def context_tokens(self) -> int:
        """Tokens of other files in a prompt of the chosen model; -1: what is computed quickly."""
        if not self.context.cross_file:
            return 0
        own = self.context.models.get(self.completion_model)
        if own is not None:
            return max(0, own)
        return self.context.tokens or -1


@dataclass(frozen=True, slots=True)
class Read:
    """Settings and what was wrong with what was sent, one line each."""

    settings: Settings
    problems: list[str]


def read_settings(values: Any) -> Read:
    """Settings from a client's JSON; problems never raise."""
    problems: list[str] = []
    if values is None:
        return Read(Settings(), problems)
    if not isinstance(values, dict):
        return Read(Settings(), [f"redraft: expected an object, got {_short(values)}"])
    values = _without_embedded(values, problems)
    return Read(_read_tree(Settings, values, "redraft", problems), problems)


def _without_embedded(values: dict[str, Any], problems: list[str]) -> dict[str, Any]:
    """``embedded`` names a model that earlier versions brought along. It reads as none."""
    read = dict(values)
    for section, name, none in (
        ("model", "path", ""),
        ("completion", "model", ""),
        ("edit", "model", ""),
        ("server", "fallback", "none"),
    ):
        part = read.get(section)
        if isinstance(part, dict) and part.get(name) == EMBEDDED:
            read[section] = {**part, name: none}
            problems.append(f"redraft.{section}.{name}: {NOT_EMBEDDED}")
    return read


def with_own_server(values: Any, started_with: Any, environment: dict[str, str]) -> Any:
    """A client's settings in which the section ``server`` is the user's own: what the editor was
    ``started_with``, else the ``environment``'s. What comes later is an editor's answer for a
    workspace, too, into which many put what stands in a file of it."""
    if values is not None and not isinstance(values, dict):
        return values
    own = started_with.get("server") if isinstance(started_with, dict) else None
    if own is not None and not isinstance(own, dict):
        return {**(values or {}), "server": own}
    given = {name: value for name, value in (own or {}).items() if value}
    server = {**environment, **given}
    others = {name: value for name, value in (values or {}).items() if name != "server"}
    return {**others, "server": server} if server else others


def _read_tree(kind: type[Tree], values: dict[str, Any], path: str, problems: list[str]) -> Tree:
    hints = get_type_hints(kind)
    fields = {camel_case(item.name): item for item in dataclasses.fields(kind)}  # type: ignore[arg-type]
    chosen: dict[str, Any] = {}
    for name, value in values.items():
        item = fields.get(name) or fields.get(camel_case(str(name)))
        where = f"{path}.{name}"
        if item is None:
            problems.append(f"{where}: unknown setting, ignored")
            continue
        hint = hints[item.name]
        if dataclasses.is_dataclass(hint):
            if isinstance(value, dict):
                chosen[item.name] = _read_tree(hint, value, where, problems)  # type: ignore[arg-type]
            elif value is not None:
                problems.append(f"{where}: expected an object, got {_short(value)}; default used")
            continue
        if value is None:
            continue
        if (problem := _problem(item, hint, value)) is None:
            chosen[item.name] = float(value) if hint is float else value
        else:
            got = "something else" if item.metadata.get("secret") else _short(value)
            problems.append(f"{where}: {problem}, got {got}; default used")
    return kind(**chosen)


def _problem(item: dataclasses.Field[Any], hint: Any, value: Any) -> str | None:
    """Why ``value`` cannot be used, or None."""
    if not _has_type(value, hint):
        return f"expected {_type_name(hint)}"
    choices, low, high = (item.metadata[key] for key in ("choices", "low", "high"))
    if choices and value not in choices:
        return "expected one of " + ", ".join(map(str, choices))
    if isinstance(value, str):
        return None
    if low is not None and not value >= low:
        return f"expected at least {low}"
    if high is not None and not value <= high:
        return f"expected at most {high}"
    return None


def _has_type(value: Any, hint: Any) -> bool:
    origin = get_origin(hint)
    if origin is Union:
        return any(_has_type(value, one) for one in get_args(hint))
    if origin is Literal:
        return value in get_args(hint)
    if origin is list:
        return isinstance(value, list) and all(_has_type(one, get_args(hint)[0]) for one in value)
    if origin is dict:
        return isinstance(value, dict) and all(
            _has_type(one, get_args(hint)[1]) for one in value.values()
        )
    if hint is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, hint)


def _type_name(hint: Any) -> str:
    if get_origin(hint) is Union:
        return " or ".join(_type_name(one) for one in get_args(hint))
    if get_origin(hint) is Literal:
        return " or ".join(get_args(hint))
    names = {bool: "true or false", int: "a whole number", float: "a number", str: "a string"}
    return names.get(hint, "a list" if get_origin(hint) is list else "an object")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def camel_case(name: str) -> str:
    """``max_tokens`` as ``maxTokens``."""
    return re.sub(r"_([a-z])", lambda found: found.group(1).upper(), name)


def settings_page() -> str:
    """Markdown page of all settings."""
    lines = ["# Settings", "", "All in the section `redraft`. Generated; do not edit.", ""]
    lines += ["| setting | default | meaning |", "| --- | --- | --- |"]
    lines += [f"| `{row.name}` | `{row.default}` | {row.doc} |" for row in settings_rows()]
    return "\n".join(lines) + "\n"


@dataclass(frozen=True, slots=True)
class Row:
    """One setting of the page."""

    name: str
    default: str
    doc: str


def settings_rows(kind: type[Any] = Settings, path: str = "redraft") -> list[Row]:
    """All settings, in the order of the tree."""
    import json

    rows: list[Row] = []
    hints = get_type_hints(kind)
    defaults = kind()
    for item in dataclasses.fields(kind):
        name = f"{path}.{camel_case(item.name)}"
        if dataclasses.is_dataclass(hints[item.name]):
            rows += settings_rows(hints[item.name], name)
            continue
        doc = item.metadata["doc"]
        if item.metadata["choices"]:
            doc += " One of " + ", ".join(f"`{one}`" for one in item.metadata["choices"]) + "."
        rows.append(Row(name, json.dumps(getattr(defaults, item.name)), doc))
    return rows


def language_enabled(settings: Settings, language: str) -> bool:
    """Whether suggestions are on for a language id."""
    return settings.languages.get(language, settings.languages.get("*", True))


def folder_enabled(settings: Settings, path: str) -> bool:
    """Whether the innermost folder of ``folders`` that holds ``path`` is switched on."""
    best, enabled = -1, True
    parts = path.rstrip("/").split("/")
    for folder, on in settings.folders.items():
        wanted = folder.rstrip("/").split("/")
        if parts[: len(wanted)] == wanted and len(wanted) > best:
            best, enabled = len(wanted), on
    return enabled


SECTIONS = frozenset(camel_case(item.name) for item in dataclasses.fields(Settings))
"""What the section ``redraft`` has on its first level."""
