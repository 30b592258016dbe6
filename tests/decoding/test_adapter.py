"""An adapter added to a GGUF file, against exact fractions computed one number at a time."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gguf_models import gguf_metadata, gguf_tensors, random_module, vocabulary_metadata
from gguf_writer import write_gguf
from numpy.typing import NDArray
from safetensors.numpy import save_file

from accel.errors import BrokenModel, UnsupportedModel
from accel.files.gguf.adapter import PROJECTIONS, Adapter, add_adapter
from accel.files.gguf.architecture import read_architecture
from accel.files.gguf.dequantise import dequantise
from accel.files.gguf.file import GgufFile
from accel.files.gguf.weights import GgufWeights
from accel.files.gguf.writing import q8_0

SIZES = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2}
TOKENS = [260, 261, 262]
RANK = 5


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Llama with a tied embedding, in Q4_0, of which Q and K lie in Llama's order of rows."""
    module = random_module("llama", tie_word_embeddings=True, **SIZES)
    metadata = gguf_metadata(module) | vocabulary_metadata(module.config.vocab_size)
    metadata |= {"general.file_type": 2, "tokenizer.chat_template": "{{ messages }}"}
    tensors = gguf_tensors(module, "Q4_0")
    embedding = gguf_tensors(module, "Q8_0")["token_embd.weight"]
    path = tmp_path_factory.mktemp("base") / "base.gguf"
    return write_gguf(path, metadata, tensors | {"token_embd.weight": embedding})


def parts_for(path: Path, seed: int = 7) -> dict[str, NDArray[Any]]:
    """The tensors of a random adapter that fits a file."""
    print("seed", seed)
    random = np.random.default_rng(seed)
    with GgufFile(path) as file:
        weights = GgufWeights(file, read_architecture(file))
        actual: dict[str, NDArray[Any]] = {}
        for name, projection in PROJECTIONS.items():
            rows, columns = weights.parts[f"model.layers.0.{projection}.weight"].shape
            for part, shape in (("A", (2, RANK, columns)), ("B", (2, rows, RANK))):
                actual[f"{name}.{part}"] = random.integers(-127, 128, shape).astype(np.int8)
                scales = random.uniform(1e-5, 3e-3, shape[:2]).astype(np.float16)
                actual[f"{name}.{part}.scale"] = scales
    actual["fim_embeddings"] = random.normal(0, 0.1, (3, 64)).astype(np.float32)
    return actual


METADATA = {
    "name": "Adapted",
    "fim_tokens": " ".join(map(str, TOKENS)),
    "repository_tokens": "263 264",
}


@pytest.fixture
def adapter(base: Path, tmp_path: Path) -> Path:
    file = tmp_path / "adapter.safetensors"
    save_file(parts_for(base), file, metadata=METADATA)
    return file


def test_each_weight_is_that_of_exact_fractions(base: Path, adapter: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.gguf"
    add_adapter(base, adapter, out)
    parts = parts_for(base)
    random = np.random.default_rng(1)
    with GgufFile(base) as old, GgufFile(out) as new:
        before = GgufWeights(old, read_architecture(old))
        after = GgufWeights(new, read_architecture(new))
        for name, projection in PROJECTIONS.items():
            layer = int(random.integers(2))
            tensor = f"model.layers.{layer}.{projection}.weight"
            values, rows = before.values(tensor), after.rows(tensor)[0]
            for row in random.choice(len(values), 3, replace=False):
                start = 32 * int(random.integers(values.shape[1] // 32))
                block = [
                    np.float32(
                        float(values[row, column]) + exact_delta(parts, name, layer, row, column)
                    )
                    for column in range(start, start + 32)
                ]
                position = start // 32 * 34
                assert bytes(rows[row, position : position + 34]) == exact_block(block), tensor


def exact_delta(
    parts: dict[str, NDArray[Any]], name: str, layer: int, row: int, column: int
) -> float:
    """Return the delta of one weight: the sum as a fraction, then the product with B's scale
    rounded once."""
    total = sum(
        Fraction(int(parts[f"{name}.B"][layer, row, k]) * int(parts[f"{name}.A"][layer, k, column]))
        * Fraction(float(parts[f"{name}.A.scale"][layer, k]))
        for k in range(RANK)
    )
    assert Fraction(float(total)) == total, "the sum is a float64"
    return float(total * Fraction(float(parts[f"{name}.B.scale"][layer, row])))


def exact_block(values: list[np.float32]) -> bytes:
    """A block of Q8_0, one number at a time."""
    d = max(abs(value) for value in values) / np.float32(127)
    numbers = []
    for value in values:
        quotient = Fraction(float(value / d)) if d else Fraction(0)
        whole = (2 * abs(quotient) + 1) // 2
        numbers.append(int(whole) * (1 if quotient >= 0 else -1))
    return np.float16(d).tobytes() + np.array(numbers, np.int8).tobytes()


def test_halves_are_rounded_away_from_zero_and_what_is_just_below_is_not() -> None:
    below = np.nextafter(np.float32(0.5), np.float32(0))
    row = np.zeros((1, 64), np.float32)
    row[0, :6] = [127, 0.5, -0.5, 1.5, below, -126.5]
    packed = q8_0(row)
    assert packed[0, 2:8].view(np.int8).tolist() == [127, 1, -1, 2, 0, -127]
    assert not packed[0, 34:].any(), "a block of zeros"


def test_the_rest_of_the_file_stays(base: Path, adapter: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.gguf"
    shares: list[float] = []
    add_adapter(base, adapter, out, shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == 1
    with GgufFile(base) as old, GgufFile(out) as new:
        assert list(new.tensors) == list(old.tensors)
        for name in old.tensors:
            if "norm" in name:
                assert (new.read(name) == old.read(name)).all()
        embedding = new.read("token_embd.weight") != old.read("token_embd.weight")
        assert np.flatnonzero(embedding.any(1)).tolist() == TOKENS
        values = dequantise(old.read("token_embd.weight"), old.tensors["token_embd.weight"].type)
        expected = q8_0(values[TOKENS] + parts_for(base)["fim_embeddings"])
        assert (new.read("token_embd.weight")[TOKENS] == expected).all()
        tokens = old.metadata.strings("tokenizer.ggml.tokens").decoded()
        assert tokens is not None
        tokens[260:263] = ["<fim_prefix>", "<fim_suffix>", "<fim_middle>"]
        assert new.metadata.strings("tokenizer.ggml.tokens").decoded() == tokens
        added = {
            "general.name": "Adapted",
            "general.file_type": 7,
            "tokenizer.ggml.fim_pre_token_id": 260,
            "tokenizer.ggml.fim_suf_token_id": 261,
            "tokenizer.ggml.fim_mid_token_id": 262,
            "tokenizer.ggml.fim_rep_token_id": 263,
            "tokenizer.ggml.fim_sep_token_id": 264,
            "tokenizer.redraft.edit_lines": 12,
        }
        assert {key: new.metadata.value(key) for key in added} == added
        for key in set(old.metadata) - {"general.file_type", "tokenizer.ggml.tokens"}:
            assert new.entry(key) == old.entry(key)


def test_the_file_is_the_same_however_sums_are_ordered(
    base: Path, adapter: Path, tmp_path: Path
) -> None:
    """Other kernels of BLAS and of NumPy add up in another order, and with fused operations."""
    program = (
        "import sys; from pathlib import Path; from accel.files.gguf.adapter import add_adapter;"
        "add_adapter(*map(Path, sys.argv[1:]))"
    )
    digests = set()
    for number, changed in enumerate(
        (
            {},
            {"OPENBLAS_CORETYPE": "Prescott", "OPENBLAS_NUM_THREADS": "1"},
            {"NPY_DISABLE_CPU_FEATURES": "AVX2 FMA3 AVX512F"},
        )
    ):
        out = tmp_path / f"{number}.gguf"
        command = [sys.executable, "-W", "ignore", "-c", program, str(base), str(adapter), str(out)]
        subprocess.run(command, env=os.environ | changed, check=True, timeout=60)
        digests.add(hashlib.sha256(out.read_bytes()).hexdigest())
    assert len(digests) == 1


def test_rows_of_the_rank_may_be_in_any_order(base: Path, tmp_path: Path) -> None:
    parts = parts_for(base)
    turned = {
        name: np.ascontiguousarray(
            part[:, ::-1] if ".A" in name else part[:, :, ::-1] if name.endswith(".B") else part
        )
        for name, part in parts.items()
    }
    files = [tmp_path / "one.safetensors", tmp_path / "other.safetensors"]
    for file, tensors in zip(files, (parts, turned), strict=True):
        save_file(tensors, file, metadata=METADATA)
    each, other = map(Adapter, files)
    for name in PROJECTIONS:
        assert (each.delta(name, 1) == other.delta(name, 1)).all()


def test_an_adapter_may_be_for_some_matrices_alone(base: Path, tmp_path: Path) -> None:
    parts = {name: part for name, part in parts_for(base).items() if name.startswith("q.")}
    adapter, out = tmp_path / "q.safetensors", tmp_path / "out.gguf"
    save_file(parts, adapter)
    add_adapter(base, adapter, out)
    with GgufFile(base) as old, GgufFile(out) as new:
        changed = {n for n in old.tensors if old.tensors[n].type != new.tensors[n].type}
        assert changed == {"blk.0.attn_q.weight", "blk.1.attn_q.weight"}
        assert new.entry("tokenizer.ggml.tokens") == old.entry("tokenizer.ggml.tokens")


def test_nothing_is_left_of_a_file_that_was_not_finished(
    base: Path, adapter: Path, tmp_path: Path
) -> None:
    out = tmp_path / "made" / "out.gguf"
    out.parent.mkdir()

    def stop(share: float) -> None:
        if share > 0.5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        add_adapter(base, adapter, out, stop)
    assert list(out.parent.iterdir()) == []
    out.write_bytes(b"as it was")
    with pytest.raises(KeyboardInterrupt):
        add_adapter(base, adapter, out, stop)
    assert out.read_bytes() == b"as it was"


def changed(parts: dict[str, NDArray[Any]], **changes: NDArray[Any] | None) -> dict[str, Any]:
    named = {name.replace("_", "."): part for name, part in changes.items()}
    return {name: part for name, part in (parts | named).items() if part is not None}


def test_what_is_no_adapter_is_refused(base: Path, tmp_path: Path) -> None:
    parts = parts_for(base)
    file = tmp_path / "adapter.safetensors"
    for broken, why in (
        (changed(parts, q_B=None), "lacks a part of q"),
        (changed(parts, q_A_scale=None), "lacks a part of q"),
        (changed(parts, q_A=parts["q.A"].astype(np.int16)), "another type"),
        (changed(parts, q_A=parts["q.A"][:, :4].copy()), "a size that cannot be"),
        (changed(parts, q_A_scale=np.full((2, RANK), 60000, np.float16)), "too large a scale"),
        (changed(parts, q_A_scale=np.full((2, RANK), np.nan, np.float16)), "too large a scale"),
        ({"other": np.zeros(3)}, "nothing to add"),
    ):
        save_file(broken, file, metadata=METADATA)
        with pytest.raises(BrokenModel, match=why):
            Adapter(file)
    save_file(parts, file)
    with pytest.raises(BrokenModel, match="does not say of which tokens"):
        Adapter(file)
    file.write_bytes(b"no adapter")
    with pytest.raises(BrokenModel, match="is no adapter"):
        Adapter(file)
    with pytest.raises(BrokenModel, match="is no adapter"):
        Adapter(tmp_path / "nothing")


def test_an_adapter_for_another_model_is_refused(base: Path, tmp_path: Path) -> None:
    parts = parts_for(base)
    file, out = tmp_path / "adapter.safetensors", tmp_path / "out.gguf"
    one_layer = {name: part if "fim" in name else part[:1].copy() for name, part in parts.items()}
    wide = np.zeros((3, 65), np.float32)
    for other, metadata in (
        (one_layer, METADATA),
        (parts | {"fim_embeddings": wide}, METADATA),
        (parts, METADATA | {"fim_tokens": "1 2 99999"}),
        (changed(parts, q_A=np.zeros((2, RANK, 32), np.int8)), METADATA),
    ):
        save_file(other, file, metadata=metadata)
        with pytest.raises(UnsupportedModel, match="for a model of another size"):
            add_adapter(base, file, out)
        assert not out.exists()
