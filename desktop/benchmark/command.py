"""The command line that measures the same."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from desktop.benchmark.plan import CONTINUOUS, Plan, Requests
from desktop.settings import Values, setting

OUTPUT = "benchmark_results.txt"
"""Where the table goes unless something else is said, as in the CANN recipe."""
PASSWORDS = "passwords.txt"
"""Stands for the file with passwords, where one is needed."""


def command_line(plan: Plan, sources: Sequence[str], values: Values,
                 engine_args: Mapping[str, str], *, protected: bool = False) -> str:
    """``verso bench …`` with what differs from the defaults. A secret in a value is left out;
    PROTECTED: a file with passwords is needed, under a name that the person makes their own."""
    words = ["verso", "bench"]
    for source in sources:
        words += ["--image", source]
    if protected:
        words += ["--password-file", PASSWORDS]
    if plan.levels != Plan.usual_levels(raised=plan.gain is not None):
        words += ["--concurrent", ",".join(map(str, plan.levels))]
    if not plan.cold:
        words.append("--no-cold")
    for flag, value, usual in (("--warmup", plan.warmup, Plan.warmup),
                               ("--rounds", plan.rounds, Plan.rounds)):
        if value != usual:
            words += [flag, str(value)]
    if plan.requests != Requests():
        words += ["--requests", str(plan.requests)]
    if plan.gain is not None:
        words += ["--raise", _number(plan.gain)]
        if plan.most != Plan.most:
            words += ["--most", str(plan.most)]
    if plan.time_cap:
        words += ["--time-cap", _number(plan.time_cap)]
    for key, limit in plan.goodput.limits.items():
        words += ["--goodput", f"{key}:{_number(limit)}"]
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


def _number(value: float) -> str:
    return f"{value:.12g}"  # :g alone keeps six digits
