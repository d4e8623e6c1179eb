"""Lets vLLM's mixture of experts run on an Ascend NPU: its ``fused_moe`` is replaced by
vllm-ascend's own functions where the installed pair needs that.

vLLM up to 0.10 has models (DeepSeek's first among them, on which DeepSeek-OCR-2 stands) that call
``fused_moe``, a Triton kernel for GPUs. vllm-ascend of the same age has what computes the same
on an NPU (``select_experts`` and ``fused_experts``) but does not put it there. Later vLLM has no
such function: its models go through a layer that vllm-ascend replaces itself.

:func:`apply` looks at what the installed modules offer, never at version numbers, and must run
before the model's code is imported, in each process that loads the model. It never raises.

This file stands on its own: it needs Python 3.9 and nothing else, imports nothing of Verso, and is
also put beside the model's code, see :func:`desktop.engines.ascend.moe.on_import`.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import json
import logging
import sys
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any, Callable, NamedTuple, Optional

log = logging.getLogger("vllm.verso")
"""Below vLLM's own logger, so that it has its handlers and level."""

PACKAGE = "vllm.model_executor.layers.fused_moe"
SUBMODULE = PACKAGE + ".fused_moe"
ASCEND = "vllm_ascend.ops.fused_moe"

APPLIED = "applied"
ALREADY = "already-applied"
NOT_NEEDED = "not-needed"
NOT_APPLIED = "not-applied"


class MoePatchWarning(UserWarning):
    """Why the patch could not be applied; ``package`` is the module it is about."""

    code = "moe-patch"
    package = ""


class PackageMissing(MoePatchWarning):
    """``package`` is not installed, with what that means and what to do."""

    meaning = ""

    def __init__(self) -> None:
        super().__init__(f"{self.package} is not installed: {self.meaning}")


class TorchNpuMissing(PackageMissing):
    code = "torch-npu-missing"
    package = "torch_npu"
    meaning = ("PyTorch cannot use an Ascend NPU. Install the torch_npu made for the installed "
               "torch.")


class VllmAscendMissing(PackageMissing):
    code = "vllm-ascend-missing"
    package = "vllm_ascend"
    meaning = ("vLLM cannot use an Ascend NPU. Install the vllm-ascend made for the installed "
               "vllm.")


class VllmMissing(PackageMissing):
    code = "vllm-missing"
    package = "vllm"
    meaning = "there is nothing to patch. Install vllm first."


class ImportBroken(MoePatchWarning):
    """PACKAGE is installed, but what the patch needs of it cannot be imported."""

    code = "import-broken"

    def __init__(self, package: str, error: BaseException) -> None:
        self.package = package
        self.error = f"{type(error).__name__}: {error}"
        super().__init__(
            f"{package} is installed but cannot be imported ({self.error}). If that names a "
            "library, CANN's environment was not set before Python was started; if it names "
            "something of vllm, vllm and vllm-ascend are of different versions.")


class NoReplacement(MoePatchWarning):
    """vLLM's models call ``fused_moe``, and the installed vllm-ascend has nothing to put there."""

    code = "no-replacement"
    package = "vllm_ascend"

    def __init__(self, found: str) -> None:
        super().__init__(
            "vLLM's models call fused_moe, which runs on GPUs only, and the installed vllm-ascend "
            f"has no function that can take its place ({found}). Use vllm-ascend 0.8.5rc1 with "
            "vllm 0.8.5.post1, or vllm-ascend 0.18.0 or later.")


class Outcome(NamedTuple):
    """What :func:`apply` did, or :func:`examine` found that it would do."""

    state: str
    """:data:`APPLIED`, :data:`ALREADY`, :data:`NOT_NEEDED` or :data:`NOT_APPLIED`."""
    reason: str
    """One sentence for the log."""
    problems: tuple[MoePatchWarning, ...] = ()
    """Why it was not applied; empty in every other state."""
    rebound: tuple[str, ...] = ()
    """Modules imported earlier that had taken vLLM's function and now have ours."""

    @property
    def fine(self) -> bool:
        """Whether the model's mixture of experts can run."""
        return self.state != NOT_APPLIED


def apply() -> Outcome:
    """Put vllm-ascend's functions in place of vLLM's ``fused_moe`` where that is needed.

    May be called again. Never raises: each problem is a warning of its own class, and in the
    outcome. vLLM stays as it was unless the state is :data:`APPLIED`.
    """
    outcome = _guarded(patch=True)
    for problem in outcome.problems:
        try:
            warnings.warn(problem, stacklevel=2)
        except MoePatchWarning:  # warnings are errors here; that is not for a patch to decide
            log.warning("Verso: mixture of experts: %s", problem)
    if outcome.fine:
        log.info("Verso: mixture of experts: %s", outcome.reason)
    return outcome


def examine() -> Outcome:
    """What :func:`apply` would do (:data:`APPLIED`: it is needed and possible); changes nothing.

    Imports vLLM and vllm-ascend where both are installed. Never raises.
    """
    return _guarded(patch=False)


def _guarded(patch: bool) -> Outcome:
    try:
        return _decide(patch)
    except MoePatchWarning as problem:
        return _not_applied(problem)
    except Exception as error:  # a patch must not keep the program from starting
        log.warning("Verso: mixture of experts", exc_info=True)
        return _not_applied(MoePatchWarning(f"The patch failed: {type(error).__name__}: {error}"))


def _not_applied(*problems: MoePatchWarning) -> Outcome:
    return Outcome(NOT_APPLIED, " ".join(str(problem) for problem in problems), problems)


def _decide(patch: bool) -> Outcome:
    missing = tuple(
        diagnosis()
        for diagnosis in (TorchNpuMissing, VllmAscendMissing, VllmMissing)
        if not _installed(diagnosis.package))
    if missing:
        return _not_applied(*missing)

    package = _import(PACKAGE)
    # Imported before anything is replaced: importing a submodule for the first time binds its
    # name, which is the function's name as well, in the package, and would undo the patch.
    try:
        submodule: Optional[ModuleType] = importlib.import_module(SUBMODULE)
    except Exception as error:  # noqa: BLE001 - it needs Triton, which an NPU may not have
        log.debug("Verso: %s cannot be imported: %s", SUBMODULE, error)
        submodule = None
    original = _function(package) or _function(submodule)
    if original is None and not (submodule is None and _defines(package)):
        return Outcome(NOT_NEEDED, "not needed: this vLLM has no fused_moe that a model calls")
    if getattr(original, "verso_replaces", None) is not None:
        return Outcome(ALREADY, "fused_moe is vllm-ascend's already")

    ascend = _ascend()
    if not patch:
        return Outcome(APPLIED, "fused_moe has to be vllm-ascend's")
    replacement = _replacement(original, ascend)
    package.fused_moe = replacement  # type: ignore[attr-defined]
    if submodule is not None:
        submodule.fused_moe = replacement  # type: ignore[attr-defined]
    rebound = _rebind(original, replacement)
    late = f"; also in {', '.join(rebound)}, imported before" if rebound else ""
    return Outcome(APPLIED, f"fused_moe is vllm-ascend's now{late}", rebound=rebound)


def _installed(name: str) -> bool:
    """Whether the top-level module NAME is there; imports nothing."""
    if sys.modules.get(name) is not None:
        return True
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):  # what stands in sys.modules without a spec
        return False


def _import(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except Exception as error:
        raise ImportBroken(name.partition(".")[0], error) from error


def _function(module: Optional[ModuleType]) -> Optional[Callable[..., Any]]:
    """``fused_moe`` of MODULE where that is a function: in a package whose __init__ does not
    export the function, it is the submodule of that name."""
    found = getattr(module, "fused_moe", None)
    return found if callable(found) and not isinstance(found, ModuleType) else None


def _defines(package: ModuleType) -> bool:
    """Whether the submodule that cannot be imported defines ``fused_moe``, by its source."""
    for folder in getattr(package, "__path__", ()):
        source = Path(folder, "fused_moe.py")
        if source.is_file():
            tree = ast.parse(source.read_bytes())
            return any(isinstance(node, ast.FunctionDef) and node.name == "fused_moe"
                       for node in tree.body)
    return False


class _Ascend(NamedTuple):
    select_experts: Callable[..., Any]
    fused_experts: Callable[..., Any]


_SELECT = ("hidden_states", "router_logits", "top_k", "use_grouped_topk", "renormalize",
           "topk_group", "num_expert_group", "custom_routing_function", "scoring_func",
           "e_score_correction_bias")
_FUSED = ("hidden_states", "w1", "w2", "topk_weights", "topk_ids", "top_k", "expert_map")


def _ascend() -> _Ascend:
    """vllm-ascend's functions, with the arguments that the replacement passes to them.

    Raises :class:`NoReplacement` where they are not there or take others, and
    :class:`ImportBroken` where they cannot be imported.
    """
    try:
        module = importlib.import_module(ASCEND)
    except ModuleNotFoundError as error:
        if error.name is not None and ASCEND.startswith(error.name):
            raise NoReplacement(f"there is no {error.name}") from error
        raise ImportBroken("vllm_ascend", error) from error
    except Exception as error:
        raise ImportBroken("vllm_ascend", error) from error
    for name, needed in (("select_experts", _SELECT), ("fused_experts", _FUSED)):
        function = getattr(module, name, None)
        if not callable(function):
            raise NoReplacement(f"{ASCEND} has no {name}")
        parameters = inspect.signature(function).parameters
        lacking = [argument for argument in needed if argument not in parameters]
        unknown = [parameter.name for parameter in parameters.values()
                   if parameter.default is parameter.empty and parameter.name not in needed
                   and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)]
        if lacking or unknown:
            raise NoReplacement(f"{name} takes {', '.join(parameters)}")
    return _Ascend(module.select_experts, module.fused_experts)


def _replacement(original: Optional[Callable[..., Any]], ascend: _Ascend) -> Callable[..., Any]:
    """A function with vLLM's signature that computes with ASCEND's functions."""

    def fused_moe(
        hidden_states: Any,
        w1: Any,
        w2: Any,
        gating_output: Any,
        topk: int,
        renormalize: bool,
        inplace: bool = False,
        activation: str = "silu",
        use_grouped_topk: bool = False,
        num_expert_group: Optional[int] = None,
        topk_group: Optional[int] = None,
        custom_routing_function: Optional[Callable[..., Any]] = None,
        **options: Any,
    ) -> Any:
        """The weighted sum of what each token's TOPK best experts make of it.

        HIDDEN_STATES (tokens, hidden), W1 (experts, 2 × intermediate, hidden) with the gate's
        half first, W2 (experts, hidden, intermediate), GATING_OUTPUT (tokens, experts) before
        softmax. Returns (tokens, hidden); INPLACE is a permission, not used.

        Raises NotImplementedError for what the NPU's functions cannot do (quantised weights,
        other activations): a wrong result is worse.
        """
        del inplace
        expert_map = options.pop("expert_map", None)
        options.pop("global_num_experts", None)
        unable = [name for name, value in options.items()
                  if value is not None and value is not False]
        if activation != "silu":
            unable.append("activation")
        if unable:
            raise NotImplementedError(f"fused_moe on an NPU cannot do {', '.join(unable)}")
        if hidden_states.shape[0] == 0:
            return hidden_states.new_empty(hidden_states.shape)
        weights, experts = ascend.select_experts(
            hidden_states=hidden_states,
            router_logits=gating_output,
            top_k=topk,
            use_grouped_topk=use_grouped_topk,
            renormalize=renormalize,
            topk_group=topk_group,
            num_expert_group=num_expert_group,
            custom_routing_function=custom_routing_function,
            scoring_func="softmax",
            e_score_correction_bias=None,
        )
        made = ascend.fused_experts(
            hidden_states=hidden_states,
            w1=w1,
            w2=w2,
            topk_weights=weights,
            topk_ids=experts,
            top_k=topk,
            expert_map=expert_map,
        )
        # vllm-ascend 0.9.1 returns the counts of tokens beside the states.
        return made[0] if isinstance(made, tuple) else made

    fused_moe.verso_replaces = original or SUBMODULE  # type: ignore[attr-defined]
    return fused_moe


def _rebind(original: Optional[Callable[..., Any]],
            replacement: Callable[..., Any]) -> tuple[str, ...]:
    """Give the REPLACEMENT to modules that took the ORIGINAL by name; their names, sorted."""
    if original is None:
        return ()
    rebound = []
    for name, module in list(sys.modules.items()):
        if isinstance(module, ModuleType) and vars(module).get("fused_moe") is original:
            module.fused_moe = replacement  # type: ignore[attr-defined]
            rebound.append(name)
    return tuple(sorted(rebound))


def report() -> str:
    """:func:`examine` as one line of JSON: state, reason, problems (code, package, message)."""
    outcome = examine()
    return json.dumps({
        "state": outcome.state,
        "reason": outcome.reason,
        "problems": [{"code": problem.code, "package": problem.package, "message": str(problem)}
                     for problem in outcome.problems],
    })


if __name__ == "__main__":
    print("\n" + report())  # vLLM may have left a line open
