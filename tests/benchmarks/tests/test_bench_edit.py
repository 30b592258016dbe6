"""``tests.benchmarks edit``: its document, its groups, and tests run in a process of their own."""

from __future__ import annotations

import json
import socket

import numpy as np
import pytest
from text_cases import data_beside, data_cases

from tests.benchmarks.__main__ import main
from tests.benchmarks.edits.ablation import ABLATION, VERIFIERS, ablation_methods
from tests.benchmarks.edits.cases import made_edits, reuse_bin, reuse_rate
from tests.benchmarks.pass_at_1 import passes

DATA = data_beside(__file__)

BEFORE = DATA["BEFORE"]
CASES = [
    {"id": "same", "instruction": "nothing", "before": BEFORE, "after": BEFORE},
    {
        "id": "rename",
        "instruction": "rename host to server",
        "before": BEFORE,
        "after": BEFORE.replace("host", "server"),
    },
    {
        "id": "rewrite",
        "instruction": "write it anew",
        "before": BEFORE,
        "after": "class Line:\n    pass\n",
    },
]


@pytest.fixture
def cases(tmp_path):
    path = tmp_path / "cases.jsonl"
    path.write_text("".join(json.dumps(case) + "\n" for case in CASES))
    return path


def bench(cases, out, *options: str) -> dict:
    code = main(["edit", "--cases", str(cases), "--json", str(out), *options])
    assert code == 0
    return json.loads(out.read_text())


def test_a_replay_gives_the_document_of_the_contract(cases, tmp_path, capsys):
    out = tmp_path / "out.json"
    methods = "plain,hf-prompt-lookup,fastfixer,efficientedit,efficientedit-official,redraft"
    document = bench(cases, out, "--common", "none", "--methods", methods)
    assert list(document["methods"]) == methods.split(",")
    assert {"machine", "model", "dtype", "versions", "seed", "commit", "cases_file"} <= set(
        document
    )
    assert document["cases_file"] == "cases.jsonl"
    assert document["options"]["max_nodes"] == 128
    plain, ours = document["methods"]["plain"], document["methods"]["redraft"]
    assert plain["cases"] == 3
    assert plain["forwards"] == plain["tokens"] == ours["tokens"]
    assert ours["tokens_per_forward"] == ours["tokens"] / ours["forwards"]
    assert ours["forwards"] < document["methods"]["efficientedit"]["forwards"]
    official = document["methods"]["efficientedit-official"]
    assert official["forwards"] >= document["methods"]["efficientedit"]["forwards"]
    assert set(document["groups"]) <= {
        "reuse < .5",
        "reuse .5 to .8",
        "reuse .8 to .95",
        "reuse > .95",
    }
    assert sum(group["plain"]["cases"] for group in document["groups"].values()) == 3


def test_max_tokens_and_nodes_are_kept(cases, tmp_path, capsys):
    document = bench(
        cases, tmp_path / "out.json", "--common", "none", "--methods", "redraft",
        "--max-tokens", "5", "--max-nodes", "3", "--limit", "2",
    )  # fmt: skip
    ours = document["methods"]["redraft"]
    assert ours["tokens"] == 10
    assert ours["nodes_per_forward"] <= 3


@data_cases()
def test_wrong_options_are_told_in_one_line(cases, capsys, options, reason):
    assert main(["edit", "--cases", str(cases), "--common", "none", *options]) != 0
    lines = capsys.readouterr().err.strip().splitlines()
    assert reason in lines[-1]


def test_a_missing_peer_can_be_skipped(cases, tmp_path, capsys):
    document = bench(
        cases, tmp_path / "out.json", "--common", "none", "--methods", "plain,draft-model",
        "--skip", "draft-model",
    )  # fmt: skip
    assert "unavailable" in document["methods"]["draft-model"]


def test_reuse_is_the_share_of_kept_tokens():
    original = np.array([1, 2, 3, 4], np.int32)
    assert reuse_rate(original, original) == 1
    assert reuse_rate(original, np.array([1, 2, 9, 9], np.int32)) == 0.5
    assert reuse_rate(original, np.empty(0, np.int32)) == 1
    assert [reuse_bin(rate) for rate in (0.2, 0.5, 0.8, 0.95, 1.0)] == [
        "reuse < .5", "reuse .5 to .8", "reuse .8 to .95", "reuse > .95", "reuse > .95",
    ]  # fmt: skip


def test_edits_are_made_by_kind(tmp_path):
    rows = [{"path": "a.py", "content": BEFORE}]
    (tmp_path / "repo.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    cases = made_edits(tmp_path, 1, 0)
    kinds = {case.path for case in cases}
    assert {"rename_parameter", "remove_docstring", "add_guard"} <= kinds
    assert all(case.before != case.after for case in cases)
    assert cases == made_edits(tmp_path, 1, 0)


@data_cases()
def test_tests_run_under_limits(answer, passed):
    assert passes(answer, "assert f() == 1", seconds=2) is passed


def test_tests_reach_no_network_and_no_files_elsewhere(tmp_path):
    other = tmp_path / "other"
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        reaching = [
            f"import socket\nsocket.create_connection(('127.0.0.1', {port})).close()",
            f"open({str(other)!r}, 'w').write('x')",
            f"import os\nos.system('touch {other}')",
            f"import subprocess\nsubprocess.run(['touch', {str(other)!r}])",
            f"import os\nos.replace('here', {str(other)!r})",
        ]
        for answer in reaching:
            assert not passes(f"open('here', 'w').write('x')\n{answer}", "pass"), answer
    assert not other.exists()
    assert passes("open('here', 'w').write('x')\nassert open('here').read() == 'x'", "pass")


def test_the_ablation_has_every_row_of_the_paper():
    rows = {
        f"{reuse}{model}+{verifier}"
        for reuse in ("", "reuse+")
        for model in ("base", "our", "sft")
        for verifier in ("greedy", "entropy-3")
    }
    assert rows <= set(ABLATION)
    assert {f"reuse+our+{name}" for name in VERIFIERS} <= set(ABLATION)
    assert set(ABLATION) <= set(ablation_methods({}))


def test_both_instructions_apart(tmp_path, capsys):
    path = tmp_path / "cases.jsonl"
    rows = [{**case, "instruction_lazy": "lazily"} for case in CASES]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    document = bench(
        path, tmp_path / "out.json", "--common", "none", "--methods", "plain,redraft",
        "--instruction", "both",
    )  # fmt: skip
    assert {name: group["plain"]["cases"] for name, group in document["groups"].items()} == {
        "descriptive": 3,
        "lazy": 3,
    }


def test_the_oracle_shows_what_drafting_could_reach(cases, tmp_path, capsys):
    options = ("--target", "model", "--no-hf", "--one-dtype", "--common", "none")
    document = bench(
        cases, tmp_path / "out.json", *options, "--methods", "oracle,redraft", "--max-tokens", "48"
    )
    oracle, redraft = document["methods"]["oracle"], document["methods"]["redraft"]
    assert oracle["identical"] == redraft["identical"] == 3
    assert oracle["forwards"] == 3 <= redraft["forwards"], "one forward holds a whole answer"
    assert document["best_peer"] is None, "nobody's method"
