"""`train adapter`: settings, low-rank changes, the file, and a run on a tiny Llama."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import frozen_corpus
import pytest
import torch
from safetensors import safe_open
from text_cases import data_cases
from tiny_models import byte_tokenizer, save

from accel.models.hf_loading import load_module
from accel.models.model_file import model_file
from tests.benchmarks.__main__ import main
from tests.benchmarks.training.adapter import rate_factor, read_code, split, train
from tests.benchmarks.training.adapter_file import quantised
from tests.benchmarks.training.adapter_settings import AdapterSettings, example, read_settings
from tests.benchmarks.training.errors import TrainingError
from tests.benchmarks.training.low_rank import PROJECTIONS, LowRankModel

WIDTH = 64
"""Of the tiny Llama."""

UNUSED = ["<issue_start>", "<issue_comment>", "<issue_closed>"]
CPU = torch.device("cpu")
TEMPLATE = (
    "{% for m in messages %}{{ '<|im_start|>' + m.content + '<|im_end|>' }}{% endfor %}"
    "{{ '<|im_start|>' }}"
)


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A tiny Llama with three tokens that nobody uses, and a chat template."""
    folder = save(tmp_path / "base", "llama", tie_word_embeddings=True)
    specials = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<file_sep>", *UNUSED]
    (folder / "tokenizer.json").write_text(byte_tokenizer(specials=specials))
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": TEMPLATE}))
    return folder


@pytest.fixture
def code(tmp_path: Path) -> Path:
    """The frozen corpus, and a history in which a word became another one."""
    folder = tmp_path / "code"
    git = ["git", "-C", str(folder), "-c", "user.name=A", "-c", "user.email=a@example.org"]
    folder.mkdir()
    subprocess.run([*git, "init", "-q"], check=True)
    for name in ("total", "amount"):
        for file in frozen_corpus.files():
            text = file.read_text().replace("total", name)
            (folder / f"{file.parent.name}_{file.name}").write_text(text)
            subprocess.run([*git, "add", "-A"], check=True)
            changed = ["commit", "-q", "--allow-empty", "-m", f"Call the {name} by that word"]
            subprocess.run([*git, *changed], check=True)
    return folder


def settings_file(folder: Path, **changes: Any) -> Path:
    given = {
        "base": "base",
        "code": ["code"],
        "out": "adapter.safetensors",
        "fim_tokens": UNUSED,
        "steps": 12,
        "rank": 4,
        "warm_up_steps": 2,
        "learning_rate": 2e-2,
        "batches": [[4, 320], [2, 480]],
        "accumulate": 1,
        "workers": 0,
        "device": "cpu",
        "held_out_share": 0.2,
    }
    file = folder / "settings.json"
    file.write_text(json.dumps({**given, **changes}))
    return file


def changed_weights(base: Path, adapter: Path) -> dict[str, torch.Tensor]:
    """The base's state with the adapter added as its format says."""
    state = dict(load_module(base, torch.float32, CPU, "sdpa").state_dict())
    with safe_open(adapter, "pt") as file:
        read = {name: file.get_tensor(name).float() for name in file.keys()}  # noqa: SIM118
    for kind, name in PROJECTIONS.items():
        a = read[f"{kind}.A"] * read[f"{kind}.A.scale"][..., None]
        b = read[f"{kind}.B"] * read[f"{kind}.B.scale"][..., None]
        for layer in range(len(a)):
            state[f"model.layers.{layer}.{name}.weight"] += b[layer] @ a[layer]
    return state


def test_a_run_learns_and_its_file_is_the_model_that_was_trained(
    base: Path, code: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", "adapter", str(settings_file(tmp_path))]) == 0
    shown = capsys.readouterr().out
    report = json.loads(shown[shown.index("{\n") :])
    assert report["steps"] == 12
    assert report["held_out_loss_after"] < 0.95 * report["held_out_loss_before"]
    with safe_open(tmp_path / "adapter.safetensors", "pt") as file:
        shapes = {name: tuple(file.get_tensor(name).shape) for name in file.keys()}  # noqa: SIM118
        kinds = {name: file.get_tensor(name).dtype for name in file.keys()}  # noqa: SIM118
        described = file.metadata()
    assert shapes["q.A"] == (2, 4, WIDTH)
    assert shapes["d.B"] == (2, WIDTH, 4)
    assert shapes["d.B.scale"] == (2, WIDTH)
    assert shapes["fim_embeddings"] == (3, WIDTH)
    assert kinds["g.A"] is torch.int8
    assert kinds["g.A.scale"] is torch.float16
    tokens = model_file(base).tokenizer
    assert described["fim_tokens"] == " ".join(str(tokens.special(name)) for name in UNUSED)
    assert described["base_sha256"] == "", "a folder is no file"
    assert changed_weights(base, tmp_path / "adapter.safetensors")


def test_low_rank_changes_are_what_the_file_adds(base: Path, tmp_path: Path) -> None:
    from tests.benchmarks.training.adapter_file import save_adapter

    module = load_module(base, torch.float32, CPU, "sdpa")
    model = LowRankModel(module, 4, [7], seed=0)
    torch.manual_seed(1)
    with torch.no_grad():
        for layers in model.changes.values():
            for change in layers:
                change.b.copy_(torch.randn_like(change.b) * 0.02)
        assert model.added_rows is not None
        model.added_rows.rows.fill_(0.5)
    save_adapter(model, tmp_path / "a.safetensors", {})
    other: Any = load_module(base, torch.float32, CPU, "sdpa")
    head = other.lm_head.weight.clone()
    other.load_state_dict(changed_weights(base, tmp_path / "a.safetensors"))
    tokens = torch.tensor([[1, 7, 3, 250]])
    with torch.no_grad():
        other.lm_head.weight = torch.nn.Parameter(head)
        other.model.embed_tokens.weight[7] += 0.5
        ours = module(input_ids=tokens).logits
        expected = other(input_ids=tokens).logits
    assert float((ours - expected).abs().max()) < 0.05 * float(expected.abs().max())


def test_the_loss_is_the_weighted_mean(base: Path) -> None:
    module = load_module(base, torch.float32, CPU, "sdpa")
    model = LowRankModel(module, 2, [], seed=0)
    tokens = torch.tensor([[5, 6, 7, 8], [9, 1, 2, 0]])
    weights = torch.tensor([[9.0, 1.0, 0.0, 0.5], [9.0, 0.25, 1.0, 0.0]])
    with torch.no_grad():
        found = float(model.loss(tokens, weights))
        rows = module(input_ids=tokens).logits.double().log_softmax(-1)
    total = sum(
        -float(weights[row, place] * rows[row, place - 1, tokens[row, place]])
        for row in range(2)
        for place in range(1, 4)
    )
    assert found == pytest.approx(total / 2.75, rel=1e-4)


def test_only_the_changes_are_trained(base: Path) -> None:
    module = load_module(base, torch.float32, CPU, "sdpa")
    model = LowRankModel(module, 2, [3], seed=0)
    trained = {id(one) for one in module.parameters() if one.requires_grad}
    assert trained == {id(one) for one in model.parameters}
    assert len(model.parameters) == 2 * len(PROJECTIONS) * 2 + 1


def test_eight_bits_keep_a_row_within_half_a_step() -> None:
    values = torch.randn(3, 5, 40, generator=torch.Generator().manual_seed(0))
    values[1, 2] = 0
    numbers, scales = quantised(values)
    read = numbers.float() * scales.float()[..., None]
    assert float((read - values).abs().max()) <= float(scales.float().max()) * 0.6
    assert (read[1, 2] == 0).all()


def test_a_model_unlike_llama_is_told(tmp_path: Path) -> None:
    module = load_module(save(tmp_path / "gpt2", "gpt2"), torch.float32, CPU, "sdpa")
    with pytest.raises(TrainingError, match="not built like Llama"):
        LowRankModel(module, 2, [], seed=0)


def test_held_out_files_are_not_trained_on(code: Path, tmp_path: Path) -> None:
    settings = AdapterSettings("base", [str(code)], "out", held_out_share=0.3)
    every = read_code([code], settings)
    training, held_out = split(every, settings)
    assert len(training.files) + len(held_out.files) == len(every.files) == 12
    assert len(held_out.files) == 4
    assert not set(training.files) & set(held_out.files)
    assert len(every.commits) > 3
    (tmp_path / "empty").mkdir()
    with pytest.raises(TrainingError, match="holds no code"):
        read_code([tmp_path / "empty"], settings)


def test_the_rate_rises_stays_and_falls() -> None:
    settings = AdapterSettings("base", [], "out", warm_up_steps=10)
    assert rate_factor(settings, 0, 0.0) == pytest.approx(0.1)
    assert rate_factor(settings, 50, 0.2) == 1.0
    assert rate_factor(settings, 90, 0.7) == pytest.approx(0.51)
    assert rate_factor(settings, 99, 1.0) == pytest.approx(0.01)


def test_the_example_is_a_file_of_settings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", "adapter", "--example"]) == 0
    shown = capsys.readouterr().out
    assert shown == example()
    file = tmp_path / "settings.json"
    file.write_text(shown)
    assert read_settings(file).batches == [[42, 384], [21, 768]]


@data_cases()
def test_wrong_settings_are_told(
    changes: dict[str, Any],
    message: str,
    base: Path,
    code: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["train", "adapter", str(settings_file(tmp_path, **changes))]) == 1
    assert message in capsys.readouterr().err


def test_a_gguf_file_is_trained_as_its_folder_is(base: Path) -> None:
    """The decoder of a GGUF file takes rows side by side."""
    from tests.benchmarks.gguf_module import _attention

    module: Any = load_module(base, torch.float32, CPU, "sdpa")
    layer = module.model.layers[0].self_attn
    states = torch.randn(3, 6, WIDTH, generator=torch.Generator().manual_seed(0))
    angles = torch.outer(torch.arange(6.0), module.model.rotary_emb.inv_freq)
    turning = angles.cos(), angles.sin()
    with torch.no_grad():
        together = _attention(layer, states, turning)
        alone = torch.cat([_attention(layer, row[None], turning) for row in states])
    assert torch.allclose(together, alone, atol=1e-5)


def test_training_needs_settings(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "adapter"]) == 1
    assert "--example" in capsys.readouterr().err


def test_one_step_on_two_workers(base: Path, code: Path, tmp_path: Path) -> None:
    file = settings_file(tmp_path, steps=1, workers=2, batches=[[1, 320]])
    assert train(read_settings(file), tmp_path)["steps"] == 1
