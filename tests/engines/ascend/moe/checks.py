"""Run under the environment with torch: the patch on real sources of vllm-ascend and vLLM.

    python checks.py VERSION              what the patch decides and does for vllm-ascend VERSION
    python checks.py VERSION numerics     what its functions compute
    python checks.py operators            the stand-ins of torch_npu against what is published

Each prints one JSON document last. The modules that the patch touches are the real ones, bodies
unmodified; what they import besides is hollow (tests/support/ascend_sources.py), torch_npu is
``npu_operators.py``.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import inspect
import json
import random
import sys
import types
import warnings
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[4]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

import npu_operators  # noqa: E402
import torch  # noqa: E402

from desktop.engines.ascend.moe import patch  # noqa: E402
from tests.support import ascend_sources  # noqa: E402

MODEL = "vllm.model_executor.models.deepseek"
torch.set_num_threads(1)


def real(version: str) -> ascend_sources.Sources:
    """Make vllm-ascend VERSION, its vLLM and a torch_npu importable."""
    npu_operators.__spec__ = importlib.machinery.ModuleSpec("torch_npu", None)
    sys.modules["torch_npu"] = npu_operators
    return ascend_sources.Sources(
        ascend_sources.roots(version),
        (patch.PACKAGE, patch.SUBMODULE, patch.ASCEND, MODEL)).install()


def told(outcome: patch.Outcome) -> dict[str, Any]:
    return {"state": outcome.state, "reason": outcome.reason, "rebound": list(outcome.rebound),
            "problems": [type(problem).__name__ for problem in outcome.problems]}


def forget() -> None:
    for name in list(sys.modules):
        if name.partition(".")[0] in ("vllm", "vllm_ascend"):
            del sys.modules[name]


def decisions(version: str) -> dict[str, Any]:
    """What the patch says of VERSION: whole, and with something missing or broken."""
    sources = real(version)
    found: dict[str, Any] = {}
    for name in ("torch_npu", "vllm_ascend", "vllm"):
        forget()
        kept = sys.modules.get(name)
        sys.modules[name] = None  # type: ignore[assignment]  # as if it were not installed
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            found["without " + name] = told(patch.apply())
        found["without " + name]["warned"] = [type(entry.message).__name__ for entry in warned]
        del sys.modules[name]
        if kept is not None:
            sys.modules[name] = kept

    forget()
    sources.broken["vllm_ascend.ops"] = lambda: ImportError(
        "libhccl.so: cannot open shared object file: No such file or directory")
    with warnings.catch_warnings(record=True):
        found["broken"] = told(patch.apply())
    sources.broken.clear()

    forget()
    found["examined"] = told(patch.examine())
    package = sys.modules[patch.PACKAGE]
    before = vars(package).get("fused_moe")
    found["applied"] = told(patch.apply())
    found["again"] = told(patch.apply())
    found["changed"] = vars(package).get("fused_moe") is not before
    if found["applied"]["state"] == patch.APPLIED:
        model = importlib.import_module(MODEL)
        importlib.import_module(patch.SUBMODULE)
        found["leading arguments"] = leading(before) == leading(model.fused_moe)
        found["model calls ours"] = hasattr(model.fused_moe, "verso_replaces")
        found["package has ours"] = package.fused_moe is model.fused_moe
        found["submodule has ours"] = sys.modules[patch.SUBMODULE].fused_moe is model.fused_moe
        forget()
        late = importlib.import_module(MODEL)
        found["late"] = told(patch.apply())
        found["late model calls ours"] = hasattr(late.fused_moe, "verso_replaces")
    return found


def leading(function: Any) -> list[tuple[str, Any]]:
    """The arguments of FUNCTION that our replacement names, with their defaults."""
    parameters = list(inspect.signature(function).parameters.values())
    return [(parameter.name, repr(parameter.default)) for parameter in parameters[:12]]


def reference(hidden: torch.Tensor, w1: torch.Tensor, w2: torch.Tensor, logits: torch.Tensor,
              k: int, renormalize: bool) -> torch.Tensor:
    """The model's mixture of experts in float64, token by token, as DeepSeek's paper defines it."""
    result = torch.zeros(hidden.shape, dtype=torch.float64)
    half = w2.shape[2]
    scores = torch.exp(logits.double() - logits.double().max(dim=1, keepdim=True).values)
    scores /= scores.sum(dim=1, keepdim=True)
    for token in range(hidden.shape[0]):
        best = sorted(range(w1.shape[0]), key=lambda e: -float(scores[token, e]))[:k]
        total = sum(float(scores[token, e]) for e in best) if renormalize else 1.0
        for expert in best:
            both = w1[expert].double() @ hidden[token].double()
            gate, up = both[:half], both[half:]
            out = w2[expert].double() @ (gate / (1 + torch.exp(-gate)) * up)
            result[token] += float(scores[token, expert]) / total * out
    return result


def apart(result: torch.Tensor, expected: torch.Tensor) -> float:
    return float((result.double() - expected).abs().max() / expected.abs().max())


def drawn(seed: int) -> dict[str, Any]:
    """A random case: shapes, k, renormalising, and how many experts nothing goes to."""
    draw = random.Random(seed)
    torch.manual_seed(seed)
    experts = draw.choice((8, 9, 16, 33, 64))
    tokens = 1 if seed % 5 == 0 else draw.choice((2, 3, 7, 19, 40))
    hidden = draw.choice((8, 24, 48, 96))
    inner = draw.choice((4, 12, 40, 56))
    logits = torch.randn(tokens, experts) * draw.choice((0.1, 1.0, 4.0))
    empty = draw.choice((0, 0, 1, experts - 8))
    logits[:, torch.randperm(experts)[:empty]] -= 100.0
    return {
        "k": seed % 8 + 1, "renormalize": bool(seed // 8 % 2), "empty": empty,
        "hidden": torch.randn(tokens, hidden), "logits": logits,
        "w1": torch.randn(experts, 2 * inner, hidden) / hidden ** 0.5,
        "w2": torch.randn(experts, hidden, inner) / inner ** 0.5,
    }


def numerics(version: str) -> dict[str, Any]:
    """The patched function, and the real model's layer through it, against float64."""
    real(version)
    outcome = patch.apply()
    assert outcome.state == patch.APPLIED, outcome
    model = importlib.import_module(MODEL)
    ascend = sys.modules[patch.ASCEND]
    worst, cases, kinds, emptied = 0.0, 0, set(), 0
    for seed in range(160):
        case = drawn(seed)
        result = model.fused_moe(case["hidden"], case["w1"], case["w2"], case["logits"], case["k"],
                                 renormalize=case["renormalize"], inplace=True)
        expected = reference(case["hidden"], case["w1"], case["w2"], case["logits"], case["k"],
                             case["renormalize"])
        assert result.shape == case["hidden"].shape
        worst = max(worst, apart(result, expected))
        cases += 1
        emptied += bool(case["empty"])
        kinds.add((case["k"], case["renormalize"], case["hidden"].shape[0] == 1))
    return {"worst": worst, "cases": cases, "kinds": len(kinds), "emptied": emptied,
            "wrong": wrong(model), "layer": layer(model),
            "full size": full_size(model), "tokenless": list(model.fused_moe(
                torch.empty(0, 8), torch.empty(4, 8, 8), torch.empty(4, 8, 4),
                torch.empty(0, 4), 2, renormalize=False).shape),
            "refused": refused(model), "tuple": gives_tuple(ascend)}


def wrong(model: Any) -> float:
    """How far a result is at least from what it must not be: the measure must see mistakes."""
    case = drawn(12)
    result = model.fused_moe(case["hidden"], case["w1"], case["w2"], case["logits"], case["k"],
                             renormalize=case["renormalize"])
    parts = case["hidden"], case["w1"], case["w2"], case["logits"]
    half = case["w2"].shape[2]
    swapped = torch.cat([case["w1"][:, half:], case["w1"][:, :half]], dim=1)
    return min(
        apart(result, reference(*parts, case["k"], not case["renormalize"])),
        apart(result, reference(*parts, case["k"] - 1, case["renormalize"])),
        apart(result, reference(parts[0], swapped, *parts[2:], case["k"], case["renormalize"])))


def layer(model: Any) -> float:
    """The real ``DeepseekMoE.forward`` with a shared expert."""
    case = drawn(81)
    shared = torch.randn(case["hidden"].shape[1], case["hidden"].shape[1])
    itself = types.SimpleNamespace(
        config=types.SimpleNamespace(n_shared_experts=1, norm_topk_prob=case["renormalize"]),
        shared_experts=lambda states: states @ shared, gate=lambda states: (case["logits"], None),
        w1=case["w1"], w2=case["w2"], top_k=case["k"])
    model.tensor_model_parallel_all_reduce = lambda states: states
    result = model.DeepseekMoE.forward(itself, case["hidden"])
    expected = reference(case["hidden"], case["w1"], case["w2"], case["logits"], case["k"],
                         case["renormalize"]) + case["hidden"].double() @ shared.double()
    return apart(result, expected)


def full_size(model: Any) -> float:
    """One call with DeepSeek-OCR-2's own shapes: 64 experts, 6 of them, 1280 by 896."""
    torch.manual_seed(0)
    hidden, logits = torch.randn(5, 1280), torch.randn(5, 64)
    w1 = torch.randn(64, 2 * 896, 1280) / 1280 ** 0.5
    w2 = torch.randn(64, 1280, 896) / 896 ** 0.5
    result = model.fused_moe(hidden, w1, w2, logits, 6, renormalize=False)
    return apart(result, reference(hidden, w1, w2, logits, 6, False))


def refused(model: Any) -> list[str]:
    """What is said to options that the NPU's functions cannot do."""
    case, said = drawn(3), []
    for options in ({"use_fp8_w8a8": True}, {"activation": "gelu"}, {"w1_scale": case["w1"]}):
        try:
            model.fused_moe(case["hidden"], case["w1"], case["w2"], case["logits"], case["k"],
                            renormalize=False, **options)
        except NotImplementedError as error:
            said.append(str(error))
    return said


def gives_tuple(ascend: Any) -> bool:
    """Whether this vllm-ascend's ``fused_experts`` returns more than the states."""
    case = drawn(3)
    weights, experts = ascend.select_experts(
        hidden_states=case["hidden"], router_logits=case["logits"], top_k=case["k"],
        use_grouped_topk=False, renormalize=False)
    return isinstance(ascend.fused_experts(
        hidden_states=case["hidden"], w1=case["w1"], w2=case["w2"], topk_weights=weights,
        topk_ids=experts, top_k=case["k"]), tuple)


def operators() -> dict[str, bool]:
    """Each operator against its published formula, written out element by element, and where
    the documentation has an example, on that."""
    torch.manual_seed(1)
    return {"gating": _gating(), "init routing": _init_routing(), "tokens": _tokens(),
            "grouped matmul": _grouped(), "swiglu": _swiglu(), "finalize routing": _finalize()}


def _gating() -> bool:
    x = torch.randn(5, 7)
    weights, experts, rows = npu_operators.npu_moe_gating_top_k_softmax(x, None, 3)
    for row in range(5):
        powers = [2.718281828459045 ** float(value) for value in x[row].double()]
        order = sorted(range(7), key=lambda e: -powers[e])[:3]
        assert experts[row].tolist() == order
        for place, expert in enumerate(order):
            assert abs(float(weights[row, place]) - powers[expert] / sum(powers)) < 1e-6
            assert int(rows[row, place]) == row + 5 * place
    return weights.dtype == x.dtype and experts.dtype == rows.dtype == torch.int32


def _init_routing() -> bool:
    # The documentation's example; its results by its formula, by hand.
    x = torch.tensor([[0.1] * 4, [0.2] * 4, [0.3] * 4])
    rows = torch.tensor([[0, 3], [1, 4], [2, 5]], dtype=torch.int32)
    experts = torch.tensor([[1, 2], [0, 1], [0, 2]], dtype=torch.int32)
    expanded, places, sorted_experts = npu_operators.npu_moe_init_routing(x, rows, experts, 3)
    assert sorted_experts.tolist() == [0, 0, 1, 1, 2, 2]
    assert places.tolist() == [2, 0, 1, 4, 3, 5]
    assert torch.equal(expanded, x[[1, 2, 0, 1, 0, 2]])
    # Random ones, with fewer active rows than there are.
    for active in (1, 3, 6, 9):
        x = torch.randn(6, 3)
        rows = torch.arange(12, dtype=torch.int32).view(2, 6).t().contiguous()
        experts = torch.randint(0, 4, (6, 2), dtype=torch.int32)
        expanded, places, sorted_experts = npu_operators.npu_moe_init_routing(
            x, rows, experts, active)
        pairs = sorted(
            (int(experts[i, j]), i * 2 + j, int(rows[i, j])) for i in range(6) for j in range(2))
        assert sorted_experts.tolist() == [expert for expert, _, _ in pairs]
        assert expanded.shape == (min(active, 6) * 2, 3)
        for place, (_, _, source) in enumerate(pairs):
            assert int(places[source]) == place
            if place < len(expanded):
                assert torch.equal(expanded[place], x[source % 6])
    return True


def _tokens() -> bool:
    # The documentation's example: the end of each expert's rows.
    example = torch.tensor([3, 3, 4, 5, 6, 7], dtype=torch.int32)
    assert npu_operators.npu_moe_compute_expert_tokens(example, 5).tolist() == [0, 0, 0, 2, 3]
    ids = torch.randint(0, 9, (50,), dtype=torch.int32).sort().values
    return npu_operators.npu_moe_compute_expert_tokens(ids, 11).tolist() == [
        sum(int(i) <= expert for i in ids) for expert in range(11)]


def _grouped() -> bool:
    x, weight = torch.randn(10, 3), torch.randn(4, 3, 5)
    ends = torch.tensor([2, 2, 7, 10])
    [out] = npu_operators.npu_grouped_matmul(
        x=[x], weight=[weight], split_item=2, group_list_type=0, group_type=0, group_list=ends)
    groups = [0, 0, 2, 2, 2, 2, 2, 3, 3, 3]
    for row, group in enumerate(groups):
        for column in range(5):
            expected = sum(float(x[row, i]) * float(weight[group, i, column]) for i in range(3))
            assert abs(float(out[row, column]) - expected) < 1e-5
    return out.shape == (10, 5)


def _swiglu() -> bool:
    x = torch.randn(4, 6)
    out = npu_operators.npu_swiglu(x)
    for row in range(4):
        for column in range(3):
            gate, up = float(x[row, column]), float(x[row, column + 3])
            expected = gate / (1 + 2.718281828459045 ** -gate) * up
            assert abs(float(out[row, column]) - expected) < 1e-6
    return out.shape == (4, 3)


def _finalize() -> bool:
    rows, k, hidden = 5, 4, 3
    results, scales = torch.randn(rows * k, hidden), torch.randn(rows, k)
    places = torch.randperm(rows * k).to(torch.int32)
    experts = torch.randint(0, 16, (rows, k), dtype=torch.int32)
    out = npu_operators.npu_moe_finalize_routing(
        results, skip1=None, skip2=None, bias=None, scales=scales,
        expanded_src_to_dst_row=places, export_for_source_row=experts)
    for i in range(rows):
        for column in range(hidden):
            expected = sum(float(scales[i, j]) * float(results[int(places[i + j * rows]), column])
                           for j in range(k))
            assert abs(float(out[i, column]) - expected) < 1e-5
    return out.shape == (rows, hidden)


if __name__ == "__main__":
    arguments = sys.argv[1:]
    if arguments == ["operators"]:
        document: Any = operators()
    elif arguments[1:] == ["numerics"]:
        document = numerics(arguments[0])
    else:
        document = decisions(arguments[0])
    print(json.dumps(document))
