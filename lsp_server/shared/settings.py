"""Every setting with its default, documentation and allowed values, in one tree of dataclasses.
What a client sends that is unknown or unusable is reported, and its default is used."""

from __future__ import annotations

import dataclasses
import os
from dataclasses import dataclass, field
from typing import Any

from accel.files.model_options import option
from lsp_server.shared.contract.codec import Problem, camel_case, read_with_problems
from lsp_server.shared.contract.jobs import MOST_ENTROPY_K
from lsp_server.shared.contract.options import EngineSettings
from operating_system.file_systems import holds

NEXT_EDIT_FORMATS = (
    "redraft",
    "redraft-piped",
    "sweep-a",
    "sweep-b",
    "zeta-1",
    "zeta-2",
    "zeta-2.1",
)
"""In which models are asked for next edits."""


@dataclass(frozen=True, slots=True)
class ModelSettings(EngineSettings):
    """The model and how it is computed. A change starts another engine process."""

    memory_megabytes: int = option(
        0,
        "What all models together may take of the main memory, in megabytes; 0: half of what is "
        "free. Where a second one does not fit beside the first, the idle one is unloaded.",
        low=0,
        high=1 << 24,
    )
    unload_after_minutes: float = option(
        30.0, "The model's memory is given back after so long without a request; 0: never.", low=0
    )


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """A server that has the model: the team's, or any that speaks OpenAI's protocol. The user's
    own settings alone count, never those of a workspace."""

    url: str = option(
        "",
        "Address of a server whose model answers instead of one on this machine, as "
        "`https://redraft.example.com`; `http` only on this machine. Empty: none. Also in the "
        "environment as `REDRAFT_SERVER_URL`. A workspace cannot set it.",
        own=True,
    )
    key: str = option(
        "",
        "The key that the server knows you by. Better in the environment as `REDRAFT_SERVER_KEY`, "
        "or where the editor keeps secrets. A workspace cannot set it.",
        own=True,
        secret=True,
    )
    model: str = option(
        "", "Which of a server's models answers, where it has several; empty: its first.", own=True
    )
    fallback: str = option(
        "model",
        "What answers while the server cannot be reached: the model of `redraft.model.path` or the "
        "one that was chosen, where there is one (model), or nothing (none).",
        choices=("model", "none"),
        own=True,
    )
    sharing: bool = option(
        False,
        "Redraft's own server may draft from your workspace: at most 64 KB of text of other files "
        "that is like the text at the cursor go along with each request, never files that are "
        "ignored or hold secrets. A model on this machine is needed, for its tokenizer.",
        own=True,
    )


@dataclass(frozen=True, slots=True)
class CompletionSettings:
    """Suggestions while typing."""

    enabled: bool = option(True, "Offer suggestions while typing.")
    model: str = option(
        "", "The model of suggestions, where another one makes edits; empty: `redraft.model.path`."
    )
    menu: str = option(
        "auto",
        "Offer suggestions in the completion menu: in clients that ask for no ghost text (auto), "
        "always or never.",
        choices=("auto", "always", "never"),
    )
    multiline: str = option(
        "auto",
        "Suggest several lines: where a block may follow (auto), never or always.",
        choices=("auto", "never", "always"),
    )
    gate: str = option(
        "balanced",
        "How sure the model has to be of what is shown while one types. Of all suggestions that "
        "are shown more than half are right to their end (eager), three of four (balanced), or "
        "nearly all of fewer (quiet); `off` shows all that it writes. Units are whole: a name, an "
        "expression, a line, one statement or block at most. What is asked for by hand is shown in "
        "full, and so is what comes from a server that tells no probabilities.",
        choices=("eager", "balanced", "quiet", "off"),
    )
    max_tokens: int = option(64, "Longest suggestion in tokens.", low=1, high=2048)
    timeout_ms: int = option(
        10_000, "After so long a request is answered empty, with the reason.", low=50
    )
    prefetch: bool = option(True, "Compute the next suggestion once one is shown.")
    temperature: float = option(0.0, "Sampling temperature; 0: the likeliest text.", low=0, high=2)
    alternatives: int = option(3, "Suggestions computed when asked for by hand.", low=1, high=8)


@dataclass(frozen=True, slots=True)
class EditSettings:
    """Edits by instruction."""

    model: str = option(
        "", "The model of edits, where another one makes suggestions; empty: `redraft.model.path`."
    )
    max_tokens: int = option(4096, "Longest edit in tokens.", low=16, high=65536)
    temperature: float = option(0.0, "Sampling temperature; 0: the likeliest text.", low=0, high=2)
    instruction_comments: bool = option(
        True, "Offer to carry out comments like `# redraft: add type hints`."
    )
    presets: bool = option(True, "Offer ready-made instructions as code actions.")
    preset_instructions: list[str] = option(
        list, "Further ready-made instructions, offered before those of the server."
    )
    timeout_seconds: float = option(300.0, "An edit that takes longer is stopped.", low=1)
    draft_model: str = option(
        "",
        "Folder, GGUF file or id of a small model with the tokenizer of the model of edits: it "
        "proposes the new text of edits, which the large one verifies. Empty: none.",
    )
    verification: str = option(
        "exact",
        "Which tokens of the draft model are taken: those that the large model writes itself "
        "(exact), or, where it is unsure, any of its likeliest (entropy, as in EfficientEdit: "
        "faster, but lossy, the text is no longer the large model's own; for a temperature of 0, "
        "and never with a server).",
        choices=("exact", "entropy"),
    )
    entropy_k: int = option(
        3,
        "With `entropy`: how many of the likeliest tokens count at most.",
        low=2,
        high=MOST_ENTROPY_K,
    )

    @property
    def likeliest(self) -> int:
        """The number of likeliest tokens that a draft model's token may be among; 0: the model's
        own default."""
        return self.entropy_k if self.verification == "entropy" else 0


@dataclass(frozen=True, slots=True)
class NextEditSettings:
    """Suggestions of edits that follow from the user's last ones."""

    enabled: bool = option(
        True,
        "Propose next edits: other uses of a name that was renamed, calls of a function whose "
        "parameters changed, the third occurrence of what was changed twice.",
    )
    display: str = option(
        "full",
        "How the editor shows a next edit: with its text (full), or as a sign beside the line "
        "until it is asked for (sign).",
        choices=("full", "sign"),
    )
    model: str = option(
        "",
        "The model of next edits, where another one makes suggestions; empty: the model of "
        "suggestions, where it was trained for next edits. What edits settle needs no model.",
    )
    format: str = option(
        "auto",
        "In which format the model is asked for next edits: as its name and its vocabulary say, "
        "where most of what such models propose is right (auto), in this one, or not at all "
        "(none). The default model is asked only in the format `redraft`.",
        choices=("auto", "none", *NEXT_EDIT_FORMATS),
    )
    gate: str = option(
        "balanced",
        "How sure the model has to be of a next edit that is shown: of more of them (eager), of "
        "those that are mostly right (balanced), or of few that are nearly always right (quiet); "
        "`off` shows all.",
        choices=("eager", "balanced", "quiet", "off"),
    )


@dataclass(frozen=True, slots=True)
class ScreenSettings:
    """The moments at which suggestions and next edits appear."""

    idle_ms: int = option(
        0,
        "Nothing is shown before so many milliseconds have passed without a key.",
        low=0,
        high=60_000,
    )
    only_asked: bool = option(
        False,
        "Show nothing until a key asks for it: that of the editor for a suggestion, that of "
        "*Show Next Edit* (`:RedraftNextEdit`) for a next edit. What is shown goes with the next "
        "key. (No editor tells when a key is let go, so nothing can be shown while one is held.)",
    )


@dataclass(frozen=True, slots=True)
class IndexSettings:
    """The datastore of the workspace, from which drafts are made."""

    enabled: bool = option(True, "Index the workspace.")
    exclude: list[str] = option(list, "Further paths to leave out, as in .gitignore.")
    ignored_open_files: bool = option(
        False,
        "Complete other files from open ones that are ignored, too; otherwise the text of those "
        "counts for their own suggestions alone.",
    )
    max_file_kilobytes: int = option(1024, "Larger files are left out.", low=1)
    common: str = option(
        "auto",
        "The common datastore: built from the standard library and the workspace's packages "
        "(auto), none, or a folder made by `redraft corpus build`.",
    )


@dataclass(frozen=True, slots=True)
class ContextSettings:
    """The parts of other files that the model reads."""

    cross_file: bool = option(True, "Put text of other files before the text at the cursor.")
    tokens: int = option(
        0,
        "At most so many tokens of other files; 0: as many as are computed in 60 ms.",
        low=0,
        high=16384,
    )
    prompt_seconds: float = option(
        1.5,
        "A prompt is as long as the model computes in so many seconds when nothing of it is known "
        "yet, by its measured speed.",
        low=0.1,
        high=60,
    )
    models: dict[str, int] = option(
        dict, "`context.tokens` by model, named as in `model.path`; 0: none."
    )


@dataclass(frozen=True, slots=True)
class LogSettings:
    """The log of the daemon and its processes."""

    level: str = option("info", "What is logged.", choices=("error", "warning", "info", "debug"))
    source_text: bool = option(False, "Write source text and prompts to the log.")


@dataclass(frozen=True, slots=True)
class Settings:
    """The section ``redraft``."""

    enabled: bool = option(True, "Switch everything on or off.")
    power: str = option(
        "auto",
        "What is computed before you pause or ask: the next suggestion, the prompt of a file that "
        "was opened, a next edit. `full`: all of it; `low`: nothing; `auto`: nothing while the "
        "machine runs on its battery.",
        choices=("auto", "full", "low"),
    )
    model: ModelSettings = field(default_factory=ModelSettings)
    server: ServerSettings = field(default_factory=ServerSettings)
    completion: CompletionSettings = field(default_factory=CompletionSettings)
    edit: EditSettings = field(default_factory=EditSettings)
    next_edits: NextEditSettings = field(default_factory=NextEditSettings)
    screen: ScreenSettings = field(default_factory=ScreenSettings)
    index: IndexSettings = field(default_factory=IndexSettings)
    context: ContextSettings = field(default_factory=ContextSettings)
    log: LogSettings = field(default_factory=LogSettings)
    languages: dict[str, bool] = option(
        dict, 'Suggestions by language id, as `{"markdown": false}`; `*` means all others.'
    )
    folders: dict[str, bool] = option(
        dict, "Switch folders on or off: absolute paths; the longest that fits counts."
    )

    @property
    def completion_model(self) -> str:
        """The path of the model of suggestions; empty: none."""
        return self.completion.model or self.model.path

    @property
    def next_edit_model(self) -> str:
        """The path of the model of next edits; empty: none."""
        return self.next_edits.model or self.completion_model

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
    """Return settings from a client's JSON; problems never raise."""
    if values is None:
        return Read(Settings(), [])
    problems: list[Problem] = []
    settings = read_with_problems(Settings, values, "redraft", problems) or Settings()
    return Read(settings, [*map(_sentence, problems)])


def _sentence(problem: Problem) -> str:
    what = "unknown setting, ignored" if problem.is_unknown else f"{problem.what}; default used"
    return f"{problem.where}: {what}"


def merged(started_with: Any, later: Any) -> Any:
    """Return settings that came later over those that the editor was started with: a section that
    says something of one setting, or nothing, leaves the others as they were."""
    if not isinstance(started_with, dict) or not isinstance(later, dict):
        return started_with if later is None else later
    both = {name: merged(started_with.get(name), value) for name, value in later.items()}
    return {**started_with, **both}


ADDRESS_OF_WORKSPACE = (
    "redraft.server.url is not read of a workspace: set it in initializationOptions, or set "
    "REDRAFT_SERVER_URL"
)


def with_own_server(values: Any, started_with: Any, environment: dict[str, str]) -> Any:
    """Return a client's settings in which the section ``server`` is the user's own: what the editor
    was ``started_with``, else the ``environment``'s. What comes later is an editor's answer for a
    workspace, too, into which many put what is in a file of it."""
    if values is not None and not isinstance(values, dict):
        return values
    own = started_with.get("server") if isinstance(started_with, dict) else None
    if own is not None and not isinstance(own, dict):
        return {**(values or {}), "server": own}
    own_values = {name: value for name, value in (own or {}).items() if value}
    server = {**environment, **own_values}
    others = {name: value for name, value in (values or {}).items() if name != "server"}
    return {**others, "server": server} if server else others


def language_enabled(settings: Settings, language: str) -> bool:
    """Return True if suggestions are on for a language id."""
    return settings.languages.get(language, settings.languages.get("*", True))


def folder_enabled(settings: Settings, path: str) -> bool:
    """Return True if the innermost folder of ``folders`` that holds ``path`` is switched on."""
    best, enabled = -1, True
    for folder, on in settings.folders.items():
        # On Windows they may be parted by either slash.
        normal = os.path.normpath(folder)
        if holds(normal, os.path.normpath(path)) and len(normal) > best:
            best, enabled = len(normal), on
    return enabled


SECTIONS = frozenset(camel_case(item.name) for item in dataclasses.fields(Settings))
"""What the section ``redraft`` has on its first level."""
