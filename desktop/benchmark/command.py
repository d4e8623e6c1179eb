"""The command line that measures the same."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from desktop.benchmark.plan import CONTINUOUS, LEVELS, Plan, Requests
from desktop.settings import Values, setting

OUTPUT = "benchmark_results.txt"
"""Where the table goes unless something else is said, as in the CANN recipe."""


def command_line(plan: Plan, sources: Sequence[str], values: Values,
                 engine_args: Mapping[str, str]) -> str:
    """``verso bench …`` with what differs from the defaults. A secret in a value is left out."""
    words = ["verso", "bench"]
    for source in sources:
        words += ["--image", source]
    default = (1,) if plan.gain is not None else LEVELS
    if plan.levels != default:
        words += ["--concurrent", ",".join(map(str, plan.levels))]
    if not plan.cold:
        words.append("--no-cold")
    for flag, value, usual in (("--warmup", plan.warmup, 2), ("--rounds", plan.rounds, 5)):
        if value != usual:
            words += [flag, str(value)]
    if plan.requests != Requests():
        words += ["--requests", str(plan.requests)]
    if plan.gain is not None:
        words += ["--raise", f"{plan.gain:g}"]
        if plan.most != Plan.most:
            words += ["--most", str(plan.most)]
    if plan.time_cap:
        words += ["--time-cap", f"{plan.time_cap:g}"]
    for key, limit in plan.goodput.limits.items():
        words += ["--goodput", f"{key}:{limit:g}"]
    if plan.strategies != (CONTINUOUS,):
        words += ["--strategy", ",".join(map(str, plan.strategies))]
    words += [flag for flag, wanted in (("--keep-engine", plan.keep_engine),
                                        ("--unique", plan.unique)) if wanted]
    if plan.ahead:
        words += ["--draw", "ahead"]
    discreet = values.discreet()
    for key in values.changed():
        declared = setting(key)
        if key == "concurrency" or not declared.applies_to(values["engine"]) or not declared.panel:
            continue
        shown = discreet[key]
        words += [declared.flag, ("on" if shown else "off") if isinstance(shown, bool)
                  else str(shown)]
    for key, text in engine_args.items():
        words += ["--engine-arg", f"{key}={text}"]
    return shlex.join(words)
