"""``python -m tests.benchmarks COMMAND``: everything that is measured beside the product."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from accel.native.levels import use_level
from accel.native.machine_code import use_cache
from lsp_server.commands.cli.argument_parser import Command, run_command

PROGRAM = "python -m tests.benchmarks"
COMMANDS: dict[str, Command] = {
    name: Command(f"tests.benchmarks.{module}", summary)
    for name, module, summary in (
        ("completion", "completion.command", "completion against its peers"),
        ("edit", "edits.command", "edits against their peers"),
        ("instructions", "edits.instructions", "edits by instruction, through every check"),
        ("index", "index.command", "the datastore: build, look up, refresh"),
        ("as-served", "as_served.command", "what a person gets, beside the best of the model"),
        ("editor-memory", "editor_memory", "memory of all processes of one editor"),
        ("learnt-costs", "learnt_costs", "learnt costs beside fixed numbers of threads"),
        ("starts", "starts", "an engine's start, by turns with another checkout"),
        ("typing", "keystrokes.command", "a person typing through the server"),
        ("programs", "keystrokes.programs", "a person typing whole programs, and what is shown"),
        ("forward", "forwards.command", "time of one forward by rows and dtype"),
        ("clients", "team.shared_forwards", "what a server writes for one client, and for eight"),
        ("kept-contexts", "as_served.kept_contexts", "prompts that a server is asked for again"),
        ("beside-forward", "team.beside_forward", "processor time of a step beside its forward"),
        ("gate", "completion.gate", "whether what each gate shows is right to its end"),
        ("chart", "page.chart", "the chart of the project's page, from the log"),
        ("machines", "page.machines", "which model suits which machine, computed"),
        ("next-edit", "next_edits.command", "next edits of real commits"),
        ("typed-changes", "next_edits.typed", "changes typed by hand, carried on by Tab alone"),
        ("apply", "apply.command", "snippets of agents, put into files"),
        ("commit-cases", "apply.commit_cases", "cases of edits, from the commits of repositories"),
        ("adaptive", "completion.adaptive", "SDSAT by its number of tokens"),
        ("fastcoder", "completion.fastcoder", "FastCoder's ablations and sweeps"),
    )
}
COMMANDS["train"] = Command(
    "",
    "train adapters and what drafts",
    {
        name: Command(f"tests.benchmarks.training.{module}", summary)
        for name, module, summary in (
            ("adapter", "adapter", "an adapter: holes, edits, next edits"),
            ("edit-draft", "edit_draft", "a small model that drafts for edits"),
            ("adaptive", "adaptive", "adaptive tokens that draft ahead"),
            ("acceptance", "acceptance", "what completion drafting knows of acceptance"),
            ("copy-weights", "copy_weights", "what edit drafting knows of places to copy from"),
        )
    },
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command, by default that of the command line; its exit code."""
    use_level()
    use_cache()
    return run_command(sys.argv[1:] if arguments is None else arguments, COMMANDS, PROGRAM)


if __name__ == "__main__":
    sys.exit(main())
