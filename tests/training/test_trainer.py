"""The training step equals transformers' own, runs resume exactly, exports load."""

from __future__ import annotations

import copy
import json
import random
import sys
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

sys.path.insert(0, str(Path(__file__).parent))
import tiny

from accel.training import base, quality
from accel.training.errors import TrainingError
from accel.training.forward import TrainingForward
from accel.training.optimizer import MatchedMuon, orthogonalised
from accel.training.tokenizer import load_tokenizer
from accel.training.trainer import TrainedShape, Trainer, TrainingPlan, learning_rate
from accel.training.units import UnitMaker


@pytest.mark.parametrize("kv_heads", [1, 2])
def test_loss_and_gradients_equal_the_stock_model(kv_heads: int) -> None:
    model = replace(tiny.SHAPE, kv_heads=kv_heads).model(0)
    # The stock class gives the padding token's row no gradient from its use as an input.
    ids = torch.randint(11, 700, (3, 300), generator=torch.Generator().manual_seed(1))
    weights = torch.rand(3, 300, generator=torch.Generator().manual_seed(2))
    total = float(weights[:, 1:].sum())
    forward = TrainingForward(model, compiled=False)
    loss, gradients = forward.gradients(ids, weights, total)
    logits = model(ids).logits[:, :-1]
    each = torch.nn.functional.cross_entropy(
        logits.reshape(-1, 700), ids[:, 1:].reshape(-1), reduction="none"
    )
    expected = (each * weights[:, 1:].reshape(-1)).sum() / total
    expected.backward()
    assert loss == pytest.approx(float(expected.detach()), rel=1e-5)
    assert torch.allclose(forward.losses(ids).reshape(-1), each.detach(), atol=1e-4)
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None
        assert torch.allclose(gradients[name], parameter.grad, rtol=1e-3, atol=1e-6), name


def test_fresh_weights_copy_and_replace_before_any_training(tmp_path: Path) -> None:
    maker = UnitMaker(load_tokenizer(tiny.run_folder(tmp_path)))
    forward = TrainingForward(TrainedShape(vocabulary=700, layers=4).model(0), compiled=False)
    plain = TrainingForward(
        TrainedShape(vocabulary=700, layers=4, copying=False).model(0), compiled=False
    )
    rng = random.Random(0)
    right = {forward: 0, plain: 0}
    total = 0
    for _ in range(6):
        ids = maker.copy_drill(rng).ids
        # The circuit goes by the three tokens before, so it starts after three.
        start = ids.index(maker.after) + 3
        total += len(ids) - 1 - start
        for each in right:
            table = each.model.model.embed_tokens.weight
            with torch.no_grad():
                best = (each.hidden(torch.tensor([ids]))[0, start:-1] @ table.T).argmax(-1)
            right[each] += sum(a == b for a, b in zip(best.tolist(), ids[start + 1 :], strict=True))
    assert right[forward] > 0.7 * total
    assert right[plain] < 0.2 * total


def test_muon_steps_are_orthogonal_and_the_loss_falls() -> None:
    matrices = torch.randn(3, 48, 32, generator=torch.Generator().manual_seed(0))
    values = torch.linalg.svdvals(orthogonalised(matrices))
    assert float(values.min()) > 0.5
    assert float(values.max()) < 1.3
    model = tiny.SHAPE.model(0)
    forward, optimizer = TrainingForward(model, compiled=False), MatchedMuon(model)
    ids = torch.randint(0, 700, (2, 64), generator=torch.Generator().manual_seed(1))
    weights = torch.ones(2, 64)
    losses = []
    for _ in range(20):
        loss, gradients = forward.gradients(ids, weights, 126.0)
        optimizer.step(gradients, 5e-3)
        losses.append(loss)
    assert losses[-1] < 0.7 * losses[0]


def test_rate_warms_up_stays_and_falls_to_the_end() -> None:
    plan = TrainingPlan(steps=100, warm_up_steps=10)
    rates = [learning_rate(plan, step, step / 100) for step in range(101)]
    assert rates[0] < rates[9] == pytest.approx(plan.learning_rate)
    assert rates[30] == pytest.approx(plan.learning_rate)
    assert rates[60] < rates[40]
    assert rates[100] == pytest.approx(plan.learning_rate * plan.final_rate)


class _Interrupted(Exception):
    pass


def _losses(trainer: Trainer, stop_after: int | None = None) -> list[float]:
    losses: list[float] = []

    def report(figures: dict[str, Any]) -> None:
        losses.append(figures["loss"])
        if len(losses) == stop_after:
            raise _Interrupted

    try:
        trainer.run(report)
    except _Interrupted:
        assert stop_after
    return losses


def test_a_resumed_run_equals_an_uninterrupted_one(tmp_path: Path) -> None:
    whole = Trainer(tiny.run_folder(tmp_path / "a"), tiny.PLAN, tiny.SHAPE, compiled=False)
    expected = _losses(whole)
    assert len(expected) == tiny.PLAN.steps
    folder = tiny.run_folder(tmp_path / "b")
    plan = replace(tiny.PLAN, checkpoint_seconds=0.0)
    first = _losses(Trainer(folder, plan, tiny.SHAPE, compiled=False), stop_after=2)
    resumed = Trainer(folder, plan, tiny.SHAPE, resume=True, compiled=False)
    assert resumed.position.step == 2
    assert first + _losses(resumed) == expected
    for name, master in whole.optimizer.masters.items():
        assert torch.equal(master, resumed.optimizer.masters[name])
    with pytest.raises(TrainingError, match="another shape"):
        Trainer(folder, plan, replace(tiny.SHAPE, layers=1), resume=True, compiled=False)

    base.export(resumed)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    ids = torch.randint(0, 700, (1, 40))
    with torch.inference_mode():
        own = copy.deepcopy(resumed.model).float()(ids).logits
        assert torch.allclose(model(ids).logits, own, atol=1e-5)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert tokenizer.convert_tokens_to_ids("<|pad|>") == model.config.pad_token_id
    assert resumed.held_out_bits_per_byte() > 0.5
    data = json.loads((folder / "data.json").read_text(encoding="utf-8"))
    assert data["sha256"] == sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    assert [package["licence"] for package in data["packages"]] == ["Apache-2.0"]
    assert data["steps"] == tiny.PLAN.steps


def test_teacher_forcing_judges_as_greedy_decoding_does(tmp_path: Path) -> None:
    folder = tiny.run_folder(tmp_path)
    base.export(Trainer(folder, tiny.PLAN, tiny.SHAPE, compiled=False))
    judge = quality.Judge(folder)
    prompt = judge.tokenizer.encode("def f(a):\n    return").ids
    out = judge.model.generate(torch.tensor([prompt]), max_new_tokens=8, do_sample=False)
    greedy = out[0].tolist()[len(prompt) :]
    logits = judge.logits([*prompt, *greedy[:-1]], len(greedy))
    assert logits.argmax(-1).tolist() == greedy


def test_missing_folders_are_one_line_errors(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="holds no model"):
        quality.Judge(tmp_path)
