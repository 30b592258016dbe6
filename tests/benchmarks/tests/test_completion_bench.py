"""The completion bench from options to its document, on three small cases."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_model import SMALL_MODEL
from text_cases import data_cases
from tiny_models import save

from accel.execution.statistics import Statistics
from accel.models.costs.forward_costs import ForwardCosts
from accel.planning.planner import AdaptivePlanner
from accel.text.tokenizer import Tokenizer
from lsp_server.shared.errors import BenchError
from tests.benchmarks import report
from tests.benchmarks.cases import evenly_spread, load_completion_cases, load_edit_cases
from tests.benchmarks.completion import command as completion
from tests.benchmarks.completion import fastcoder
from tests.benchmarks.completion.replay import in_tokens, project
from tests.benchmarks.completion.targets import OWN_TOKENS
from tests.benchmarks.datastores import CaseDatastores, common_token_files
from tests.benchmarks.model_shapes import SHAPES

METHOD_FIELDS = {
    "cases": int,
    "tokens": int,
    "forwards": int,
    "tokens_per_forward": float,
    "tokens_per_forward_mean": float,
    "bytes_per_forward": float,
    "nodes_per_forward": float,
    "draft_us_p50": float,
    "draft_us_p95": float,
    "verify_ms_p50": float,
    "wall_s": float,
    "prefill_s": float,
    "tokens_per_s": float,
    "identical": int,
    "exact": int,
    "repeated_16grams": float,
}


def measure(module: Any, cases: Path, *options: str) -> dict[str, Any]:
    """The document of a bench that is run with these options."""
    parser = argparse.ArgumentParser()
    module.add_arguments(parser)
    out = cases.parent / "out.json"
    args = parser.parse_args(
        ["--model", str(SMALL_MODEL), "--cases", str(cases), "--json", str(out), *options]
    )
    assert module.run(args) == 0
    document: dict[str, Any] = json.loads(out.read_text("utf-8"))
    return document


def check_contract(document: dict[str, Any], methods: list[str]) -> None:
    assert list(document["methods"]) == methods
    assert sorted(document["groups"]) == ["no repository", "shapes"]
    for figures in (document["methods"], *document["groups"].values()):
        for fields in figures.values():
            for name, kind in METHOD_FIELDS.items():
                assert isinstance(fields[name], kind), name
            assert fields["tokens"] > 0
    for name in methods:
        total = document["methods"][name]
        of_groups = [figures[name] for figures in document["groups"].values()]
        for field in ("cases", "tokens", "forwards", "identical", "exact"):
            assert total[field] == sum(fields[field] for fields in of_groups)
        assert total["tokens_per_forward"] == pytest.approx(total["tokens"] / total["forwards"])
    assert set(document) >= {"machine", "model", "dtype", "versions", "seed", "commit"}
    assert document["cases_file"] == "cases.jsonl"


def test_replay_document(cases: Path, common: Path) -> None:
    methods = ["plain", "hf-prompt-lookup", "rest-rule", "fastcoder", "redraft"]
    document = measure(completion, cases, "--common", str(common))
    check_contract(document, methods)
    figures = document["methods"]
    assert len({fields["tokens"] for fields in figures.values()}) == 1
    assert figures["plain"]["tokens_per_forward"] == 1
    assert figures["redraft"]["tokens_per_forward"] > 1.2
    assert figures["fastcoder"]["tokens_per_forward"] > 1.1
    assert all(fields["identical"] == fields["exact"] == 3 for fields in figures.values())
    assert document["options"]["max_nodes"] == 64


def test_node_limit_and_case_limit(cases: Path) -> None:
    document = measure(
        completion, cases, "--common", "none", "--max-nodes", "3", "--limit", "2", "--left-only"
    )
    assert all(fields["nodes_per_forward"] <= 3 for fields in document["methods"].values())
    assert document["methods"]["plain"]["cases"] == 2


def test_model_document(cases: Path, common: Path) -> None:
    options = ("--target", "model", "--threads", "1", "--common", str(common), "--max-tokens", "24")
    document = measure(completion, cases, *options, "--methods", "plain,hf-generate,redraft")
    check_contract(document, ["plain", "hf-generate", "redraft"])
    figures = document["methods"]
    for fields in figures.values():
        assert fields["identical"] == fields["identical_hf"] == 3
        assert fields["tokens_per_s"] > 0
        assert fields["speedup"] > 0
    assert figures["plain"]["forwards"] == figures["plain"]["tokens"]
    assert figures["redraft"]["forwards"] <= figures["plain"]["forwards"]
    assert set(document["plain_decoding"]) == {
        *("plain", "hf-generate", "plain bf16", "hf-generate bf16")
    }
    fastest = document["plain_decoding"][document["fastest_plain"]]
    assert fastest["speedup"] == 1.0


def test_what_a_model_writes_itself_beside_the_replay(cases: Path) -> None:
    options = ("--common", "none", "--limit", "2", "--threads", "1", "--methods", "redraft")
    document = measure(completion, cases, *options, "--own-text", str(SMALL_MODEL))
    own = document["own_text"]["methods"]
    assert list(document["methods"]) == ["redraft"]
    assert list(own) == ["plain", "redraft"]
    assert own["plain"]["tokens"] == own["redraft"]["tokens"] <= 2 * OWN_TOKENS
    assert own["redraft"]["identical"] == 2
    # The token that ends a text takes a forward and is none of it.
    assert own["redraft"]["tokens_per_forward"] >= own["plain"]["tokens_per_forward"] > 0.9
    assert own["plain"]["ms_per_token"] > 0
    with pytest.raises(BenchError, match="own end"):
        measure(completion, cases, "--stop", "end")


def test_run_on_text_and_sampling(cases: Path) -> None:
    document = measure(
        completion,
        cases,
        *("--target", "model", "--one-dtype", "--threads", "1", "--common", "none"),
        *("--stop", "length", "--max-tokens", "20", "--temperature", "0.8", "--seed", "3"),
        *("--methods", "fastcoder,redraft"),
    )
    figures = document["methods"]
    assert list(figures) == ["plain", "fastcoder", "redraft"]
    assert all(fields["tokens"] == 3 * 20 for fields in figures.values())
    # The same seed gives the same text, whatever was drafted.
    assert all(fields["identical"] == 3 for fields in figures.values())
    assert all(fields["identical_hf"] is None for fields in figures.values())


def test_missing_peers(cases: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "draftretriever", None)
    monkeypatch.delenv("REDRAFT_REST_PYTHON", raising=False)
    options = ("--common", "none", "--methods", "plain,rest")
    with pytest.raises(BenchError, match="--skip rest"):
        measure(completion, cases, *options)
    document = measure(completion, cases, *options, "--skip", "rest")
    assert "draftretriever" in document["methods"]["rest"]["unavailable"]
    assert document["methods"]["plain"]["cases"] == 3
    alone = str(save(tmp_path / "alone", "llama"))
    model = ("--target", "model", "--model", alone, "--common", "none", "--methods", "standard-sd")
    with pytest.raises(BenchError, match="--draft-model"):
        measure(completion, cases, *model)


def test_a_projection_by_hand() -> None:
    # 10 ms for a row, 40 ms for two to 65: rows are padded to what was measured.
    planner = AdaptivePlanner(ForwardCosts([16], [1, 65], np.array([[0.01, 0.04]])), widths=(1, 65))
    statistics = Statistics(prompt_tokens=10)
    statistics.draft_s, statistics.learn_s = [0.001, 0.001], 0.003
    statistics.accepted, statistics.forwards = [2, 0], 2
    found = project(statistics, [4, 0], planner)
    assert found.plain_s == pytest.approx(0.04)
    assert found.drafted_s == pytest.approx(0.002 + 0.003 + 0.04 + 0.01)
    assert (found.forwards, found.nodes) == (2, 4)


def test_a_speed_up_is_projected_on_a_shape(cases: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kind, fields = SHAPES["1.3B"]
    small = {"hidden_size": 64, "num_hidden_layers": 1, "intermediate_size": 96}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 2, "max_position_embeddings": 4096}
    monkeypatch.setitem(SHAPES, "tiny", (kind, {**fields, **small, **heads}))
    options = ("--shape", "tiny", "--dtype", "int8", "--threads", "1", "--common", "none")
    document = measure(completion, cases, *options, "--methods", "plain,fastcoder,redraft")
    assert document["dtype"] == "int8"
    assert list(document["forward_ms"]) == ["1", "2", "4", "8", "16", "32", "64"]
    plain, fastcoder, redraft = document["methods"].values()
    # A forward of this shape takes so little that the time of not drafting counts.
    assert 0.9 < plain["projected_speedup"] <= 1
    # What has no probabilities is verified whole, as it was drafted; ours is cut to what pays.
    assert fastcoder["projected_nodes_per_forward"] == fastcoder["nodes_per_forward"]
    assert redraft["projected_nodes_per_forward"] <= redraft["nodes_per_forward"]
    assert all(fields["projected_tokens_per_s"] > 0 for fields in document["methods"].values())


@data_cases()
def test_wrong_options(cases: Path, options: list[str], message: str) -> None:
    with pytest.raises(BenchError, match=message):
        measure(completion, cases, *options)


@data_cases()
def test_wrong_cases(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "cases.jsonl"
    file.write_text(text, "utf-8")
    with pytest.raises(BenchError, match=message):
        measure(completion, file)
    with pytest.raises(BenchError, match="cannot be read"):
        load_completion_cases(tmp_path / "missing.jsonl")


def test_standard_output_holds_the_document_alone(
    cases: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parser = argparse.ArgumentParser()
    completion.add_arguments(parser)
    args = parser.parse_args(
        ["--model", str(SMALL_MODEL), "--cases", str(cases), "--common", "none", "--json"]
    )
    assert completion.run(args) == 0
    assert "methods" in json.loads(capsys.readouterr().out)


def test_the_reference_is_nowhere_in_the_index(cases: Path, common: Path) -> None:
    tokenizer = Tokenizer.from_folder(SMALL_MODEL)
    stores = CaseDatastores(tokenizer, common_token_files(tokenizer, common))
    first, second, alone = load_completion_cases(cases)
    known = {path: tokenizer.decode(ids) for path, ids in _known(stores, first, False).items()}
    assert known["helpers.py"] == first.prefix
    assert known["helpers.py after the cursor"] == first.suffix
    assert "shapes.py" in known
    assert not any("return low" in text for text in known.values())
    assert "helpers.py after the cursor" not in _known(stores, first, True)
    assert set(_known(stores, second, False)) == {"helpers.py", "shapes.py", "rectangle.py"}
    assert set(_known(stores, alone, False)) == {"solution.py"}
    assert [Path(path).name for path in stores.common] == ["geometry.py"]
    # The snapshot answers from what is known and from nothing else.
    low = tokenizer.encode(" value < low:\n        return low")
    snapshot = stores.snapshot(first, left_only=False)
    assert snapshot.lookup(low, max_match=16).lengths.max() < len(low)
    own = stores.snapshot(second, left_only=False)
    assert own.lookup(low, max_match=16).lengths.max() >= min(len(low), 16)


def _known(stores: CaseDatastores, case: Any, left_only: bool) -> dict[str, Any]:
    return stores.files_of(case, left_only=left_only)


def test_prompt_and_target_meet_at_a_border_between_tokens(cases: Path) -> None:
    tokenizer = Tokenizer.from_folder(SMALL_MODEL)
    for case in load_completion_cases(cases):
        replayed = in_tokens(tokenizer, case, left_only=False, max_tokens=512)
        whole = [*replayed.prompt.tolist(), *replayed.target.tolist()]
        assert whole == tokenizer.encode(case.prefix + case.reference).tolist()


def test_common_code_is_cached_and_the_same(common: Path) -> None:
    tokenizer = Tokenizer.from_folder(SMALL_MODEL)
    first = common_token_files(tokenizer, common)
    again = common_token_files(tokenizer, common)
    assert {path: ids.tolist() for path, ids in first.items()} == {
        path: ids.tolist() for path, ids in again.items()
    }


def test_limited_cases_come_from_all_over() -> None:
    assert evenly_spread(list(range(10)), 3) == [0, 3, 6]
    assert evenly_spread([1, 2], 5) == [1, 2]
    assert evenly_spread([1, 2], None) == [1, 2]


def test_edit_cases(tmp_path: Path) -> None:
    file = tmp_path / "edits.jsonl"
    row = {"id": "e", "instruction": "Rename x", "before": "x = 1\n", "after": "y = 1\n"}
    file.write_text(json.dumps(row) + "\n\n", "utf-8")
    (case,) = load_edit_cases(file)
    assert (case.instruction_lazy, case.before, case.after) == ("Rename x", "x = 1\n", "y = 1\n")


def test_ablation_rows_of_fastcoder(cases: Path, common: Path) -> None:
    # Without common code REST has nothing to draft from, and the repository all there is.
    document = measure(fastcoder, cases, "--common", "none")
    rows = document["rows"]
    assert list(rows) == list(fastcoder.COMPONENTS)
    assert rows["baseline"]["tokens_per_forward"] == 1
    assert rows["+ datastore D"]["tokens_per_forward"] > 1.1
    assert rows["baseline"]["skipped"] == rows["baseline"]["from_cache"] == 0
    sweep = measure(fastcoder, cases, "--common", str(common), "--part", "p")["rows"]
    assert sweep["p = 0.1"]["skipped"] > sweep["p = 0.9"]["skipped"]


def test_importing_the_benches_loads_no_torch() -> None:
    modules = "methods report cases measurement completion.command completion.fastcoder"
    names = ", ".join(f"tests.benchmarks.{name}" for name in modules.split())
    code = f"import sys, {names}, tests.benchmarks.forwards.command; print('torch' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "False"


def test_versions_name_the_arithmetic() -> None:
    assert {"redraft", "python", "torch", "transformers"} <= set(report.versions())
