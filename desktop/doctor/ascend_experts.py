"""Whether the installed vLLM needs vllm-ascend's mixture of experts put in its place, and whether
that can be done: asked of the packages themselves, not of their version numbers."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from desktop.client.interpreter import THOROUGH_SECONDS
from desktop.client.probing import ask
from desktop.client.staging import environment as variables_for
from desktop.client.staging import stage
from desktop.engines.ascend import moe
from desktop.engines.ascend.environment import Environment
from desktop.engines.ascend.moe import patch
from desktop.errors import Problem, VersoError
from desktop.i18n import N_, _

PATCHED_BEFORE = "patched"
NEEDED, NOT_NEEDED, IMPOSSIBLE, UNKNOWN = "needed", "not-needed", "impossible", "unknown"
_STATES = {patch.APPLIED: NEEDED, patch.ALREADY: PATCHED_BEFORE, patch.NOT_NEEDED: NOT_NEEDED}
_TITLES = {NEEDED: N_("needed; Verso puts it in place"), PATCHED_BEFORE: N_("in place already"),
           NOT_NEEDED: N_("not needed"), IMPOSSIBLE: N_("needed and not possible"),
           UNKNOWN: N_("not known")}


class NoExperts(VersoError):
    """vLLM calls a function for GPUs, and vllm-ascend has nothing for it."""

    code = "ascend.experts"
    message = N_("The model's mixture of experts cannot run on an NPU: the installed vLLM calls "
                 "fused_moe, which is for GPUs, and the installed vllm-ascend has nothing to put "
                 "in its place.")
    hint = N_("Install vllm-ascend 0.8.5rc1 with vLLM 0.8.5.post1, or vllm-ascend 0.18.0 with "
              "vLLM 0.18.0.")


class StackBroken(VersoError):
    """vLLM or vllm-ascend cannot be imported, though CANN is there."""

    code = "ascend.package"
    message = N_("{package} cannot be imported by {path}: {reason}")
    hint = N_("If that names a library: the versions of CANN, driver and torch-npu must go "
              "together (the table above); else install vllm-ascend and vLLM of one version anew.")


class ExpertsUnknown(VersoError):
    """There was no answer."""

    code = "ascend.experts_unknown"
    message = N_("Whether the MoE patch is needed could not be found out: {reason}")
    hint = N_("Try again when the machine has less to do; the engine finds it out itself when it "
              "starts.")


@dataclass(frozen=True)
class Experts:
    """What was found. ``state``: needed, patched, not-needed, impossible, unknown."""

    state: str
    reason: str = ""
    """A sentence for the log; English."""
    problem: Problem | None = None
    warning: Problem | None = None

    @property
    def words(self) -> str:
        """The state for a person."""
        return _(_TITLES[self.state])


def look(path: str, environment: Environment, *, can_start: bool = True,
         seconds: float = THOROUGH_SECONDS) -> Experts:
    """Ask the interpreter PATH, started with ENVIRONMENT as the engine's worker would be.

    vLLM and vllm-ascend are imported there, at most for SECONDS. CAN_START: nothing is missing
    without which they cannot be imported; otherwise that they cannot is no news. Raises nothing.
    """
    extra: dict[str, str | None] = {**environment.variables,
                                    **dict.fromkeys(environment.removed)}
    folders = stage()
    try:
        answer = ask([path, str(moe.script())], seconds=seconds, folder=str(folders.work),
                     environment=variables_for(path, folders.path, extra))
    except OSError as error:
        return _unknown(error.strerror or str(error))
    if answer.timed_out:
        return _unknown(_("no answer within {seconds} s").format(seconds=f"{seconds:g}"))
    said = _said(answer.out)
    if said is None:
        lines = (answer.err.strip() or answer.out.strip() or f"status {answer.status}")
        return _unknown(lines.splitlines()[-1][:300])
    state = _STATES.get(str(said.get("state")))
    if state is not None:
        return Experts(state, str(said.get("reason", "")))
    for problem in said.get("problems") or ():
        code, package, message = (str(problem.get(key, ""))
                                  for key in ("code", "package", "message"))
        if code == patch.NoReplacement.code:
            return Experts(IMPOSSIBLE, message, NoExperts(detail=message).problem())
        if code == patch.ImportBroken.code:
            reason = message.partition("(")[2].partition("). If ")[0] or message
            return Experts(UNKNOWN, message, StackBroken(
                package=package, path=path, reason=reason, detail=message).problem()
                if can_start else None)
    # A package that is not installed: the report says so without asking.
    return Experts(UNKNOWN, str(said.get("reason", "")))


def _said(out: str) -> dict[str, Any] | None:
    """The last line that is its answer."""
    for line in reversed(out.splitlines()):
        if line.startswith("{"):
            try:
                found = json.loads(line)
            except ValueError:
                continue
            if isinstance(found, dict) and "state" in found:
                return found
    return None


def _unknown(reason: str) -> Experts:
    return Experts(UNKNOWN, reason, warning=ExpertsUnknown(reason=reason).problem())
