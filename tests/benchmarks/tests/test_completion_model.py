"""The completion bench on a small random model: every method that needs one, and its options."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_models import byte_tokenizer, open_engine, run, save

from accel.draft_tree import DraftTree
from accel.verification.sampling import Sampling
from lsp_server.shared.errors import BenchError
from tests.benchmarks.cases import load_completion_cases
from tests.benchmarks.completion import command as completion
from tests.benchmarks.completion.model import (
    WARM_UP_TOKENS,
    CompletionMethod,
    CompletionTask,
    Decoded,
    EngineDecoder,
    decode_cases,
    make_task,
)
from tests.benchmarks.completion.repocoder import Prompts, RepoCoderDecoder
from tests.benchmarks.datastores import CaseDatastores
from tests.benchmarks.published.fastcoder import FastCoderDrafter

TOKENS = 24
STOPS = "end", "length"
OPTIONS = ("--target", "model", "--one-dtype", "--threads", "1", "--common", "none", "--left-only")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.set_num_threads(1)
    return save(tmp_path_factory.mktemp("model"), "llama", max_position_embeddings=2048)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(
        tmp_path_factory.mktemp("small"), "llama", num_hidden_layers=1, max_position_embeddings=2048
    )


def bench(cases: Path, model: Path, *options: str, file: str = "") -> dict[str, Any]:
    parser = argparse.ArgumentParser()
    completion.add_arguments(parser)
    out = cases.parent / "out.json"
    files = ["--cases", file or str(cases), "--json", str(out), "--model", str(model)]
    args = parser.parse_args([*files, *OPTIONS, "--max-tokens", str(TOKENS), *options])
    assert completion.run(args) == 0
    document: dict[str, Any] = json.loads(out.read_text("utf-8"))
    return document


def test_every_method_gives_the_text_of_plain_decoding(
    cases: Path, model: Path, small: Path
) -> None:
    names = (
        "plain,hf-generate,hf-prompt-lookup,standard-sd,draft-model,self-speculative,"
        "rest-rule,fastcoder,redraft"
    )
    document = bench(cases, model, "--methods", names, "--draft-model", str(small))
    assert list(document["methods"]) == names.split(",")
    for name, fields in document["methods"].items():
        assert fields["identical"] == fields["identical_hf"] == 3, name
        assert fields["tokens"] == 3 * TOKENS, name
        assert fields["pair_ratio"] > 0, name
    drafting = ("standard-sd", "draft-model", "self-speculative")
    assert all(document["methods"][name]["nodes_per_forward"] > 0 for name in drafting)
    assert document["options"]["draft_model"] == small.name


def test_repeated_cases_with_shared_prompts(cases: Path, model: Path) -> None:
    options = ("--repeat", "2", "--share-prompts", "--limit", "2", "--methods", "redraft")
    document = bench(cases, model, *options)
    for fields in document["methods"].values():
        assert fields["cases"] == fields["identical"] == 4
    assert document["methods"]["plain"]["pair_ratio"] == 1


def test_text_that_no_datastore_knows(cases: Path, model: Path) -> None:
    options = ("--limit", "2", "--methods", "redraft", "--stop", "length")
    document = bench(cases, model, *options, file="random")
    assert document["cases_file"] == "random"
    assert document["methods"]["redraft"]["identical"] == 2
    assert document["methods"]["redraft"]["tokens"] == 2 * TOKENS


@pytest.mark.parametrize("where", [[], ["--penalise-prompt"]])
def test_a_repetition_penalty_is_the_same_for_all(
    cases: Path, model: Path, where: list[str]
) -> None:
    names = ("--methods", "hf-generate,hf-prompt-lookup,fastcoder,redraft")
    penalised = bench(cases, model, *names, "--repetition-penalty", "1.7", *where)
    for name, fields in penalised["methods"].items():
        assert fields["identical"] == fields["identical_hf"] == 3, name
    assert penalised["options"]["repetition_penalty"] == 1.7
    assert penalised["options"]["penalise_prompt"] == bool(where)


def test_transformers_in_another_dtype(cases: Path, model: Path) -> None:
    names = ("--methods", "hf-generate,redraft")
    document = bench(cases, model, *names, "--hf-dtype", "bf16")
    assert set(document["plain_decoding"]) == {"plain", "hf-generate", "hf-generate fp32"}
    # Our text is checked against the same dtype, theirs against their own plain decoding.
    for name in ("plain", "redraft"):
        assert document["methods"][name]["identical_hf"] == 3
    assert document["methods"]["hf-generate"]["identical"] == 3
    fastest = bench(cases, model, *names, "--hf-dtype", "fastest")
    assert {"plain", "hf-generate"} <= set(fastest["plain_decoding"])


def test_nobody_owes_transformers_a_sampled_text(cases: Path, model: Path) -> None:
    names = ("--methods", "hf-generate,redraft")
    document = bench(cases, model, *names, "--temperature", "1", "--top-p", "0.9")
    assert document["methods"]["redraft"]["identical"] == 3
    assert document["methods"]["hf-generate"]["identical"] is None
    assert all(fields["identical_hf"] is None for fields in document["methods"].values())


def test_which_layers_draft(cases: Path, model: Path) -> None:
    options = ("--limit", "1", "--methods", "self-speculative")
    whole = bench(cases, model, *options, "--draft-layers", "0,1")["methods"]["self-speculative"]
    first = bench(cases, model, *options, "--draft-layers", "1")["methods"]["self-speculative"]
    assert whole["identical"] == first["identical"] == 1
    # All layers draft the text itself, as far as they are sure of it.
    accepted = whole["tokens"] - whole["forwards"]
    assert accepted == pytest.approx(whole["nodes_per_forward"] * whole["forwards"])
    with pytest.raises(BenchError, match="no number"):
        bench(cases, model, *options, "--draft-layers", "two")
    with pytest.raises(BenchError, match="let 1 to 2"):
        bench(cases, model, *options, "--draft-layers", "3")


def test_retrieval_with_what_was_written(cases: Path, model: Path) -> None:
    names = ("--methods", "plain,hf-generate,redraft")
    document = bench(cases, model, "--prompt", "repocoder", *names)
    for fields in document["methods"].values():
        assert fields["identical"] == fields["identical_hf"] == 3
        assert fields["tokens"] == 2 * 3 * TOKENS, "both rounds are counted"
        assert fields["total_s"] == pytest.approx(fields["prompt_s"] + fields["generation_s"])
        assert fields["prompt_s"] > 0
    assert document["methods"]["plain"]["total_speedup"] == 1
    with pytest.raises(BenchError, match="--target model"):
        bench(cases, model, "--prompt", "repocoder", "--target", "replay")


def test_the_second_prompt_is_made_of_the_first_text(cases: Path, model: Path) -> None:
    engine = open_engine(model)
    stores = CaseDatastores(engine.tokenizer, {})
    case = load_completion_cases(cases)[0]
    plain = EngineDecoder(engine, lambda: None, plan=False, max_nodes=0, sampling=Sampling())
    prompts = Prompts(engine, stores, left_only=True, max_tokens=TOKENS)
    asked: list[str] = []
    similar = prompts.similar

    def noted(task: Any, query: str) -> Any:
        asked.append(query)
        return similar(task, query)

    prompts.similar = noted  # type: ignore[method-assign]
    task = make_task(case, stores, engine, "length", TOKENS, True)
    decoded = RepoCoderDecoder(plain, prompts)(task)
    assert asked[0] == case.prefix
    first = prompts.after_retrieval(task, "")
    assert decoded.prompt is not None
    text = engine.tokenizer.decode(decoded.prompt.tokens)
    assert "# The below code fragment can be found in:\n# shapes.py" in text
    assert asked[1].startswith(case.prefix)
    assert first.max_tokens == task.max_tokens
    again = run(engine, decoded.prompt.tokens, max_tokens=TOKENS, ignore_end=True)
    assert decoded.tokens.tolist() == again.tokens.tolist()
    assert decoded.statistics.tokens == 2 * TOKENS


def test_a_shared_session_computes_a_prompt_once(cases: Path, model: Path) -> None:
    engine = open_engine(model)
    stores = CaseDatastores(engine.tokenizer, {})
    session = engine.session()
    decode = EngineDecoder(
        engine, lambda: None, plan=False, max_nodes=0, sampling=Sampling(), session=session
    )
    alone = EngineDecoder(engine, lambda: None, plan=False, max_nodes=0, sampling=Sampling())
    for case in load_completion_cases(cases):
        task = make_task(case, stores, engine, "length", TOKENS, True)
        first, second, other = decode(task), decode(task), alone(task)
        assert second.statistics.prompt_tokens_reused == len(task.prompt.tokens) - 1
        assert other.statistics.prompt_tokens_reused == 0
        texts = [each.tokens.tolist() for each in (first, second, other)]
        assert texts[0] == texts[1] == texts[2]


def test_each_decoder_begins_with_tokens_that_are_not_measured(cases: Path, model: Path) -> None:
    engine = open_engine(model)
    plainly = EngineDecoder(engine, lambda: None, plan=False, max_nodes=0, sampling=Sampling())
    calls: list[tuple[str, int]] = []

    def noting(name: str) -> CompletionMethod:
        def decode(task: CompletionTask) -> Decoded:
            calls.append((name, task.max_tokens))
            return plainly(task)

        return decode

    measured = decode_cases(
        load_completion_cases(cases)[:2],
        {name: noting(name) for name in ("plain", "other")},
        CaseDatastores(engine.tokenizer, {}),
        engine,
        stop="length",
        max_tokens=TOKENS,
        left_only=True,
    )
    assert [len(each.tokens) for each in measured] == 4 * [TOKENS]
    pairs = [calls[i : i + 2] for i in range(2, len(calls), 2)]
    names = [name for name, _ in calls[2::2]]
    assert names == ["plain", "other", "other", "plain"]
    assert pairs == [[(name, WARM_UP_TOKENS), (name, TOKENS)] for name in names]


def test_a_text_ends_where_the_model_ends_it(cases: Path, model: Path) -> None:
    engine = open_engine(model)
    decode = EngineDecoder(engine, lambda: None, plan=False, max_nodes=0, sampling=Sampling())
    case, stores = load_completion_cases(cases)[0], CaseDatastores(engine.tokenizer, {})
    to_its_end, run_on = (make_task(case, stores, engine, stop, TOKENS, True) for stop in STOPS)
    whole = decode(run_on).tokens.tolist()
    last = whole[TOKENS // 2]
    for task, expected in ((to_its_end, whole[: whole.index(last)]), (run_on, whole)):
        task.prompt.stop_tokens = frozenset({last})
        assert decode(task).tokens.tolist() == expected


def test_what_is_missing_is_said(cases: Path, model: Path, small: Path, tmp_path: Path) -> None:
    with pytest.raises(BenchError, match="--skip draft-model"):
        bench(cases, model, "--methods", "draft-model")
    with pytest.raises(BenchError, match="train adaptive"):
        bench(cases, model, "--methods", "sdsat")
    document = bench(cases, model, "--methods", "plain,sdsat", "--skip", "sdsat")
    assert "adaptive tokens" in document["methods"]["sdsat"]["unavailable"]
    foreign = save(tmp_path / "foreign", "llama")
    (foreign / "tokenizer.json").write_text(byte_tokenizer(["def "]), "utf-8")
    with pytest.raises(BenchError, match="another tokenizer"):
        bench(cases, model, "--methods", "draft-model", "--draft-model", str(foreign))
    for name in ("self-speculative", "draft-model"):
        with pytest.raises(BenchError, match="no such method"):
            bench(cases, model, "--methods", name, "--target", "replay")


def test_without_transformers(cases: Path, model: Path) -> None:
    document = bench(cases, model, "--limit", "1", "--no-hf")
    assert list(document["methods"]) == ["plain", "fastcoder", "redraft"]
    assert list(document["plain_decoding"]) == ["plain"]
    assert document["methods"]["redraft"]["identical"] == 1
    assert document["methods"]["redraft"]["identical_hf"] is None
    assert document["transformers"]["threads"] is None
    with pytest.raises(BenchError, match="take hf-generate out"):
        bench(cases, model, "--no-hf", "--methods", "plain,hf-generate")


def test_a_method_that_breaks(cases: Path, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drafts = 0

    def breaks(drafter: FastCoderDrafter, max_nodes: int) -> DraftTree:
        nonlocal drafts
        drafts += 1
        if drafts > TOKENS:
            raise OSError("gone\nfor good")
        return DraftTree.empty()

    monkeypatch.setattr(FastCoderDrafter, "draft", breaks)
    options = ("--no-hf", "--one-dtype", "--methods", "fastcoder,redraft")
    document = bench(cases, model, *options, "--skip", "fastcoder")
    broken = {"unavailable": "fastcoder failed (OSError: gone for good)"}
    assert document["methods"]["fastcoder"] == broken
    assert document["methods"]["redraft"]["cases"] == 3
    assert all("fastcoder" not in group for group in document["groups"].values())
    with pytest.raises(OSError, match="gone"):
        bench(cases, model, *options)
