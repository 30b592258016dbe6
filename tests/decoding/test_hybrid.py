"""Hybrids of attention and gated DeltaNet, as Qwen3.5 has them, in our own forward."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conformance import feed, path_to, random_tree
from gguf_writer import stored, write_gguf
from hybrid_models import (
    hybrid_metadata,
    hybrid_tensors,
    random_hybrid,
    save_hybrid,
    save_hybrid_gguf,
    vocabulary_metadata,
)
from numpy.typing import NDArray
from text_cases import data_beside
from tiny_models import Oracle, compiled, numbers, open_engine

from accel.decoding.request import GenerationRequest
from accel.draft_tree import TokenArray
from accel.errors import BrokenModel, UnsupportedModel
from accel.files.hybrid import turned_order
from accel.models.batch import chain_batch, tree_batch
from accel.models.cpu.delta_net.cache import MOST_KEPT, HybridCache
from accel.models.cpu.delta_net.model import CompiledHybrid
from accel.models.cpu.delta_net.shape import CHUNK
from accel.models.model_file import GgufModel, model_file

DATA = data_beside(__file__)


def logits_of(module: Any, text: TokenArray) -> NDArray[np.float32]:
    with torch.inference_mode():
        ids = torch.from_numpy(text.astype(np.int64))[None]
        actual: NDArray[np.float32] = module(ids, use_cache=False).logits[0].numpy()
    return actual


def squared_error(found: NDArray[np.float32], expected: NDArray[np.float32]) -> float:
    """Normalised by how far the logits of a row lie from their mean."""
    spread = expected - expected.mean(-1, keepdims=True)
    return float(((found - expected) ** 2).sum() / (spread**2).sum())


def some_text(seed: int, count: int) -> TokenArray:
    return np.random.default_rng(seed).integers(0, 256, count).astype(np.int32)


@pytest.fixture(scope="module")
def module() -> Any:
    return random_hybrid()


@pytest.fixture(scope="module")
def file(module: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_hybrid_gguf(tmp_path_factory.mktemp("hybrid") / "m.gguf", module, "Q8_0")


@pytest.fixture(scope="module")
def model(file: Path) -> CompiledHybrid:
    """In eight bits, as people have it."""
    actual = compiled(file, "int8")
    assert isinstance(actual, CompiledHybrid)
    return actual


SHAPES: dict[str, dict[str, Any]] = DATA["SHAPES"]


@pytest.mark.parametrize("dtype", ["fp32", "int8"])
@pytest.mark.parametrize("shape", SHAPES)
def test_logits_are_those_of_transformers(shape: str, dtype: str, tmp_path: Path) -> None:
    module = random_hybrid(1, **SHAPES[shape])
    text = some_text(0, 150)
    ours = compiled(save_hybrid(tmp_path, module), dtype)
    actual = numbers(ours, chain_batch(text, 0), ours.new_cache(8))
    expected = logits_of(module, text)
    if dtype == "fp32":
        assert squared_error(actual, expected) < 1e-8
        assert (actual.argmax(-1) == expected.argmax(-1)).all()
    else:
        # Random weights make much of what eight bits leave out.
        assert squared_error(actual, expected) < 0.1
        assert (actual.argmax(-1) == expected.argmax(-1)).mean() > 0.6


@pytest.mark.parametrize("shape", SHAPES)
def test_a_converted_file_is_the_folder(shape: str, tmp_path: Path) -> None:
    """Heads of values are tiled there, norms have their one, and what forgets is -exp(A_log)."""
    module = random_hybrid(2, **SHAPES[shape])
    kinds = [kind == "linear_attention" for kind in module.config.layer_types]
    changes = {"attention.recurrent_layers": kinds} if "layer_types" in SHAPES[shape] else {}
    file = save_hybrid_gguf(tmp_path / "m.gguf", module, **changes)
    text = some_text(0, 100)
    ours = compiled(file, "fp32")
    actual = numbers(ours, chain_batch(text, 0), ours.new_cache(8))
    assert squared_error(actual, logits_of(module, text)) < 1e-8


def test_the_text_part_is_what_is_read(module: Any, tmp_path: Path) -> None:
    plain = compiled(save_hybrid(tmp_path / "plain", module))
    whole = compiled(save_hybrid(tmp_path / "whole", module, whole=True))
    batch = chain_batch(some_text(1, 40), 0)
    actual = [numbers(each, batch, each.new_cache(8)) for each in (plain, whole)]
    assert np.array_equal(*actual)
    assert "pictures" in model_file(tmp_path / "whole").passed_over
    assert model_file(tmp_path / "plain").passed_over == ""


def test_layers_for_several_tokens_are_passed_over(module: Any, tmp_path: Path) -> None:
    tensors = hybrid_tensors(module)
    tensors |= {
        name.replace("blk.3.", "blk.4."): each for name, each in tensors.items() if "blk.3." in name
    }
    tensors["blk.4.nextn.eh_proj.weight"] = tensors["blk.3.attn_k.weight"]
    keys = {"block_count": 5, "nextn_predict_layers": 1}
    about = hybrid_metadata(module, **keys) | vocabulary_metadata(300)
    file = write_gguf(tmp_path / "m.gguf", about, tensors)
    opened = model_file(file)
    assert opened.has_compiled_forward
    assert "several tokens" in opened.passed_over
    text = some_text(2, 50)
    ours = compiled(file, "fp32")
    actual = numbers(ours, chain_batch(text, 0), ours.new_cache(8))
    assert squared_error(actual, logits_of(module, text)) < 1e-8


@pytest.mark.parametrize(
    "name", ["blk.0.ssm_d", "blk.1.attn_qkv.bias", "blk.3.attn_sinks.weight", "rope_else.weight"]
)
def test_what_is_not_known_is_refused_with_its_name(name: str, module: Any, tmp_path: Path) -> None:
    tensors = hybrid_tensors(module)
    tensors[name] = tensors["blk.0.ssm_a"]
    about = hybrid_metadata(module) | vocabulary_metadata(300)
    opened = model_file(write_gguf(tmp_path / "m.gguf", about, tensors))
    assert isinstance(opened, GgufModel)
    assert not opened.is_known
    with pytest.raises(UnsupportedModel, match=name):
        assert opened.has_compiled_forward


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"ssm.conv_kernel": 3}, "convolution"),
        ({"rope.dimension_count": 48}, "multiple of 32"),
        ({"attention.recurrent_layers": [False] * 4}, "no hybrid"),
        ({"rope.scaling.type": "yarn"}, "scales positions"),
        ({"expert_count": 4}, "mixture"),
        ({"attention.clamp_kqv": 1.0}, "clamps"),
    ],
)
def test_shapes_that_our_forward_has_not(
    changes: dict[str, Any], why: str, module: Any, tmp_path: Path
) -> None:
    opened = model_file(save_hybrid_gguf(tmp_path / "m.gguf", module, **changes))
    with pytest.raises(UnsupportedModel, match=why):
        assert opened.has_compiled_forward


def test_heads_of_odd_sizes_are_left_to_others(tmp_path: Path) -> None:
    module = random_hybrid(0, linear_key_head_dim=16)
    opened = model_file(save_hybrid_gguf(tmp_path / "m.gguf", module))
    with pytest.raises(UnsupportedModel, match="multiple of 32"):
        assert opened.has_compiled_forward
    assert not model_file(save_hybrid(tmp_path, module)).has_compiled_forward


def test_what_is_turned_comes_in_pairs_a_half_apart() -> None:
    order = turned_order(256, 64)
    assert sorted(order) == list(range(256))
    assert order[:32].tolist() == list(range(32))
    assert order[128:160].tolist() == list(range(32, 64))


def check_random_tree(model: CompiledHybrid, seed: int) -> None:
    """Every row of a tree has the bits of plain decoding, wherever chunks end, and so has what
    comes after the branch that is kept."""
    random = np.random.default_rng(seed)
    text = random.integers(0, 256, int(random.integers(2, 3 * CHUNK))).astype(np.int32)
    tree = random_tree(random, int(random.integers(1, 2 * CHUNK)))
    if random.random() < 0.5:
        # Long enough to end a chunk or two.
        tree.parents = np.maximum(np.arange(len(tree)) - random.integers(1, 3, len(tree)), -1)
        tree.parents = tree.parents.astype(np.int32)
    path = path_to(tree, int(random.integers(0, len(tree))))
    plain, drafted = model.new_cache(8), model.new_cache(8)
    for token in text[:-1]:
        model.forward(chain_batch(np.array([token], np.int32), 1), [plain])
        plain.commit([0])
    feed(model, drafted, text[:-1])
    actual = numbers(model, tree_batch(text[-1:], tree), drafted)
    drafted.commit([0, *(1 + node for node in path)])
    for node, token in zip([-1, *path], [text[-1], *tree.tokens[path]], strict=True):
        expected = numbers(model, chain_batch(np.array([token], np.int32), 0), plain)
        plain.commit([0])
        assert np.array_equal(actual[node + 1], expected[0]), f"seed {seed}, node {node}"
    for token in random.integers(0, 256, int(random.integers(1, 40))):
        batch = chain_batch(np.array([token], np.int32), 0)
        each, other = (numbers(model, batch, cache) for cache in (plain, drafted))
        assert np.array_equal(each, other), f"seed {seed}"
        for cache in (plain, drafted):
            cache.commit([0])
    # Behind what is committed keys and values are what is left of other branches.
    same = zip((plain.state() or [])[2:], (drafted.state() or [])[2:], strict=True)
    assert all(np.array_equal(each, other) for each, other in same), f"seed {seed}"


@pytest.mark.parametrize("seeds", [range(12), pytest.param(range(12, 200), marks=pytest.mark.long)])
def test_rows_of_trees_have_the_bits_of_plain_decoding(model: CompiledHybrid, seeds: range) -> None:
    for seed in seeds:
        check_random_tree(model, seed)


@pytest.mark.parametrize("seeds", [range(3), pytest.param(range(3, 50), marks=pytest.mark.long)])
def test_drafted_texts_are_those_of_slow_plain_decoding(file: Path, seeds: range) -> None:
    """Slow: no cache, every prefix computed as a whole."""
    engine = open_engine(file, dtype="int8")
    session, accepted = engine.session(), 0
    for seed in seeds:
        random = np.random.default_rng(seed)
        text = random.integers(0, 256, int(random.integers(1, 90))).astype(np.int32)
        plain = text
        for _ in range(24):
            whole = chain_batch(plain, len(plain) - 1, wants_numbers=True)
            logits = engine.model.forward(whole, [engine.model.new_cache(8)])
            plain = np.append(plain, np.int32(logits.row(0).argmax()))
        expected = plain[len(text) :]
        drafter = Oracle(expected, seed)
        request = GenerationRequest(text, 24, drafter, ignore_end=True, plan=False)
        drafted = engine.generate(request, session).finish()
        assert drafted.tokens.tolist() == expected.tolist(), f"seed {seed}"
        accepted += sum(drafted.statistics.accepted)
    assert accepted


@pytest.mark.parametrize("threads", [1, 2])
def test_a_text_is_the_same_in_parts_of_any_length(model: CompiledHybrid, threads: int) -> None:
    text, random = some_text(3, 300), np.random.default_rng(4)
    model.threads = threads
    whole = model.new_cache(8)
    feed(model, whole, text[:-1])
    expected = numbers(model, chain_batch(text[-1:], 0), whole)
    for _ in range(4):
        cache = model.new_cache(8)
        while cache.length < len(text) - 1:
            count = int(random.integers(1, 100))
            feed(model, cache, text[cache.length : -1][:count])
        assert np.array_equal(numbers(model, chain_batch(text[-1:], 0), cache), expected)
    model.threads = 1


def test_a_larger_cache_may_be_read_by_fewer_threads_than_before(file: Path) -> None:
    batch = chain_batch(some_text(6, 8), 0)
    alone, shared = compiled(file, "int8"), compiled(file, "int8")
    shared.threads = 2
    numbers(shared, batch, shared.new_cache(8))
    shared.threads = 1
    results = [numbers(model, batch, model.new_cache(900)) for model in (alone, shared)]
    assert np.array_equal(*results)


def test_going_back_starts_from_the_last_state_before(model: CompiledHybrid) -> None:
    text = some_text(5, 400)
    cache = model.new_cache(8)
    assert isinstance(cache, HybridCache)
    feed(model, cache, text[:300])
    for token in text[300:]:
        model.forward(chain_batch(np.array([token], np.int32), 1), [cache])
        cache.commit([0])
    begin = len(text) // CHUNK * CHUNK
    cache.trim(begin + 2)
    assert cache.length == begin + 2, "within the chunk under way nothing is lost"
    lengths = []
    for length in (begin - 1, 290, 200, 40):
        cache.trim(length)
        lengths.append(cache.length)
        assert cache.length % CHUNK == 0
        assert cache.length <= length
        feed(model, cache, text[cache.length : length])
        other = model.new_cache(8)
        feed(model, other, text[:length])
        batch = chain_batch(text[length : length + 1], 0)
        assert np.array_equal(*(numbers(model, batch, each) for each in (cache, other)))
    assert lengths[0] == begin - CHUNK
    assert lengths[1] >= 290 - 3 * CHUNK


def test_few_states_are_kept(model: CompiledHybrid) -> None:
    empty, cache = (model.new_cache(21 * CHUNK) for _ in range(2))
    assert isinstance(cache, HybridCache)
    for token in some_text(6, 20 * CHUNK):
        model.forward(chain_batch(np.array([token], np.int32), 1), [cache])
        cache.commit([0])
    states = (cache.nbytes - empty.nbytes) / cache.kept.state.nbytes
    assert MOST_KEPT - 1 < states < MOST_KEPT + 3


def test_a_session_is_held_again_as_it_was(model: CompiledHybrid) -> None:
    text = some_text(7, 150)
    cache, again = model.new_cache(8), model.new_cache(8)
    feed(model, cache, text[:-1])
    feed(model, again, text[50:])
    state = [part.copy() for part in cache.state() or []]
    again.restore(state, cache.length)
    batch = chain_batch(text[-1:], 0)
    assert np.array_equal(*(numbers(model, batch, each) for each in (cache, again)))
    with pytest.raises(ValueError, match="shape"):
        again.restore(state[:-1], cache.length)
    with pytest.raises(ValueError, match="shape"):
        again.restore(state, cache.length + 1)
    assert again.length == 0


@pytest.mark.parametrize("is_copied", [False, True])
def test_a_session_that_is_held_again_goes_back_as_far(
    model: CompiledHybrid, is_copied: bool
) -> None:
    text = some_text(9, 400)
    cache = model.new_cache(8)
    feed(model, cache, text[:300])
    for token in text[300:]:
        model.forward(chain_batch(np.array([token], np.int32), 1), [cache])
        cache.commit([0])
    state = [part.copy() for part in cache.state() or []]
    kept = state[-3].tolist()
    assert len(kept) == MOST_KEPT
    for length in (kept[-1] + 3, kept[-2], kept[1] - 1):
        again = model.new_cache(8)
        if is_copied:
            assert again.copy(cache)
        else:
            again.restore(state, 400)
        again.trim(length)
        assert again.length == max(count for count in kept if count <= length)
        feed(model, again, text[again.length : length])
        other = model.new_cache(8)
        feed(model, other, text[:length])
        batch = chain_batch(text[length : length + 1], 0)
        assert np.array_equal(*(numbers(model, batch, each) for each in (again, other)))


_LAYER_COUNTS: dict[str, tuple[dict[str, Any], str]] = DATA["_LAYER_COUNTS"]


@pytest.mark.parametrize("how", _LAYER_COUNTS)
def test_layers_are_those_whose_tensors_are_there(how: str, module: Any, tmp_path: Path) -> None:
    changes, refused = _LAYER_COUNTS[how]
    about = hybrid_metadata(module, **changes) | vocabulary_metadata(300)
    file = write_gguf(tmp_path / "m.gguf", about, hybrid_tensors(module))
    if refused:
        with pytest.raises(BrokenModel, match=refused):
            compiled(file, "fp32")
        return
    text = some_text(2, 50)
    ours = compiled(file, "fp32")
    actual = numbers(ours, chain_batch(text, 0), ours.new_cache(8))
    assert squared_error(actual, logits_of(module, text)) < 1e-8


def test_the_share_that_rope_turns_is_the_familys(module: Any, tmp_path: Path) -> None:
    about = hybrid_metadata(module) | vocabulary_metadata(300)
    del about["qwen35.rope.dimension_count"]
    opened = model_file(write_gguf(tmp_path / "m.gguf", about, hybrid_tensors(module)))
    assert isinstance(opened, GgufModel)
    actual = opened.architecture
    assert actual.hybrid is not None
    assert actual.hybrid.rotary_dim == actual.head_dim // 4


def test_rates_of_the_wrong_sign_are_refused(module: Any, tmp_path: Path) -> None:
    tensors = hybrid_tensors(module)
    rate = tensors["blk.1.ssm_a"]
    turned = -np.frombuffer(rate.data, np.float32)
    about = hybrid_metadata(module) | vocabulary_metadata(300)
    file = write_gguf(tmp_path / "m.gguf", about, tensors | {"blk.1.ssm_a": stored(turned)})
    with pytest.raises(BrokenModel, match=r"blk\.1\.ssm_a is above zero"):
        compiled(file, "fp32")


def test_rows_may_be_committed_after_another_forward(model: CompiledHybrid) -> None:
    """Each cache has its own rows until they are text, with any forwards between."""
    text = some_text(8, 90)
    caches = [model.new_cache(8) for _ in range(3)]
    for cache in caches[:2]:
        feed(model, cache, text[:60])
    batches = [chain_batch(text[60:70], 0), chain_batch(text[70:90], 0)]
    for cache, batch in zip(caches, batches, strict=False):
        model.forward(batch, [cache])
    caches[0].commit(list(range(10)))
    feed(model, caches[2], text[:70])
    last = chain_batch(text[70:71], 0)
    assert np.array_equal(*(numbers(model, last, caches[at]) for at in (0, 2)))


def test_states_of_a_long_text_are_near_those_in_64_bits(tmp_path: Path) -> None:
    """Those of the first layer, whose inputs are embeddings alone."""
    module = random_hybrid(3, layer_types=["linear_attention", "full_attention"] * 2)
    ours, text = compiled(save_hybrid(tmp_path, module)), some_text(9, 2000)
    cache = ours.new_cache(8)
    assert isinstance(cache, HybridCache)
    for first in range(0, len(text), 200):
        feed(ours, cache, text[first : first + 200])
    expected = slow_states(module, text[: len(text) // CHUNK * CHUNK])
    actual = cache.kept.state[0].swapaxes(1, 2).reshape(expected.shape)
    assert np.abs(actual - expected).max() < 1e-3 * np.abs(expected).max()


def slow_states(module: Any, text: TokenArray) -> NDArray[np.float64]:
    """The recurrence of the first layer, token by token, in 64 bits: [heads, key, value]."""
    layer, config = module.model.layers[0], module.config
    mixer = layer.linear_attn.double()
    x = module.model.embed_tokens.weight.double()[torch.from_numpy(text.astype(np.int64))]
    x = x * torch.rsqrt((x * x).mean(-1, keepdim=True) + config.rms_norm_eps)
    x = x * (1 + layer.input_layernorm.weight.double())
    with torch.inference_mode():
        mixed = mixer.in_proj_qkv(x).T[None]
        mixed = torch.nn.functional.silu(mixer.conv1d(mixed)[0, :, : len(text)]).T
        beta = mixer.in_proj_b(x).sigmoid().numpy()
        gate = -mixer.A_log.exp() * torch.nn.functional.softplus(mixer.in_proj_a(x) + mixer.dt_bias)
    share = mixer.num_v_heads // mixer.num_k_heads
    keys = mixed[:, mixer.key_dim : 2 * mixer.key_dim].reshape(len(text), -1, mixer.head_k_dim)
    keys = (keys / (keys.square().sum(-1, keepdim=True) + 1e-6).sqrt()).numpy().repeat(share, 1)
    values = mixed[:, 2 * mixer.key_dim :].reshape(len(text), -1, mixer.head_v_dim).numpy()
    state = np.zeros((mixer.num_v_heads, mixer.head_k_dim, mixer.head_v_dim))
    for row, kept in enumerate(gate.exp().numpy()):
        state *= kept[:, None, None]
        seen = np.einsum("hkv,hk->hv", state, keys[row])
        change = (values[row] - seen) * beta[row][:, None]
        state += keys[row][:, :, None] * change[:, None]
    return state
