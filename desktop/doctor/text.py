"""The examination as a person reads it in a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from desktop import __version__
from desktop.client.interpreter import Report
from desktop.doctor.diagnosis import Diagnosis
from desktop.doctor.engines import Examination, Model
from desktop.doctor.machine import Disk, Machine
from desktop.engines.remote.probe import Report as ServerReport
from desktop.errors import Problem
from desktop.i18n import _, ngettext
from desktop.models.places import ORIGINS

WIDTH = 96
_GB = 1 << 30
_FACT = 12
"""Columns of a fact's name."""


def lines(found: Diagnosis) -> Iterator[str]:
    """FOUND, line by line."""
    yield _("Verso {version} on {system}").format(version=__version__, system=found.machine.system)
    yield ""
    yield _("MACHINE")
    yield from _machine(found.machine)
    for problem in found.settings:
        yield from _problem("!", problem, 2)
    yield ""
    yield _("ENGINES")
    for examined in found.engines:
        yield from _engine(examined, examined.entry.name == found.chosen)
    yield ""
    yield from _verdict(found)


def size(count: int) -> str:
    """Bytes in words."""
    if count < _GB:
        return _("{n} MB").format(n=round(count / (1 << 20)))
    return _("{n} GB").format(n=f"{count / _GB:.1f}")


def interpreter_facts(report: Report) -> str:
    """An interpreter in one line: what it has."""
    parts = [f"Python {report.python}" if report.python else _("no Python")]
    titles = {"vllm": "vLLM", "torch": "torch", "transformers": "transformers",
              "vllm-ascend": "vllm-ascend", "torch-npu": "torch-npu", "msgspec": "msgspec",
              "pillow": "Pillow"}
    for name, title in titles.items():
        if name in report.versions:
            source = report.distributions.get(name)
            parts.append(f"{title} {report.versions[name]}" + (f" ({source})" if source else ""))
    if report.thorough and report.device_kind:
        names = ", ".join(dict.fromkeys(report.devices))
        parts.append(_("computes on {devices}").format(devices=names or report.device_kind))
    return ", ".join(parts)


def model_facts(model: Model) -> str:
    """A model's folder in one line."""
    state = _("complete") if model.found.complete else _("not complete")
    return f"{model.folder} ({_(ORIGINS[model.origin])}), {size(model.found.bytes)}, {state}"


def _fact(name: str, text: str, indent: int = 2) -> Iterator[str]:
    head = f"{'':{indent}}{name:{_FACT}}"
    yield from textwrap.wrap(text, WIDTH, initial_indent=head, break_long_words=False,
                             break_on_hyphens=False,
                             subsequent_indent=" " * (indent + _FACT)) or [head.rstrip()]


def _problem(mark: str, problem: Problem, indent: int) -> Iterator[str]:
    yield from textwrap.wrap(problem.message, WIDTH, initial_indent=f"{'':{indent}}{mark} ",
                             subsequent_indent=" " * (indent + 2), break_long_words=False)
    if problem.hint:
        # A command is copied: it stays in one piece.
        yield from textwrap.wrap(problem.hint, WIDTH, initial_indent=f"{'':{indent + 2}}→ ",
                                 subsequent_indent=" " * (indent + 4), break_long_words=False,
                                 break_on_hyphens=False)


def _machine(found: Machine) -> Iterator[str]:
    yield from _fact("Python", f"{found.python} ({found.interpreter})")
    yield from _fact(_("Processor"), ngettext("{n} core", "{n} cores", found.cores).format(
        n=found.cores))
    if found.memory_total:
        memory = _("{free} free of {total}").format(free=size(found.memory_free),
                                                    total=size(found.memory_total))
        if found.memory_limit and found.memory_limit < found.memory_total:
            memory += _(", this process may take {limit}").format(limit=size(found.memory_limit))
        yield from _fact(_("Memory"), memory)
    for disk in found.disks:
        yield from _fact(_("Disk"), _disk(disk))
    gpus = found.gpus
    if gpus.problem is not None:
        yield from _problem("✗", gpus.problem, 2)
    elif not gpus.found:
        yield from _fact("GPU", _("none") if gpus.tool else _("none (no nvidia-smi)"))
    for gpu in gpus.found:
        device = gpu.device
        text = _("{number}: {name}, {free} free of {total}").format(
            number=device.number, name=device.name, free=size(device.free),
            total=size(device.total))
        if gpu.busy is not None:
            text += _(", {n} % busy").format(n=gpu.busy)
        yield from _fact("GPU", text + _(", driver {version}").format(version=gpu.driver))
        for user in device.users:
            yield from _fact("", _("used by {name} {pid}: {memory}").format(
                name=user.name or _("process"), pid=user.pid, memory=size(user.bytes)))


def _disk(disk: Disk) -> str:
    what = {"data": _("data"), "models": _("models"), "cache": _("cache")}[disk.what]
    if disk.free < 0:
        return _("{path} ({what}) does not answer").format(path=disk.path, what=what)
    return _("{free} free in {path} ({what})").format(free=size(disk.free), path=disk.path,
                                                      what=what)


def _engine(found: Examination, chosen: bool) -> Iterator[str]:
    mark = "✓" if found.can_start else "✗"
    state = _("can start") if found.can_start else _("cannot start")
    title = f"{_(found.entry.title)} ({found.entry.name})"
    yield f"  {mark} {title}: {state}" + (_(" – the chosen one") if chosen else "")
    for problem in found.problems:
        yield from _problem("✗", problem, 4)
    if found.interpreter is not None:
        yield from _fact("Python", f"{found.interpreter.path}: "
                         + interpreter_facts(found.interpreter), 4)
    if found.model is not None:
        yield from _fact(_("Model"), model_facts(found.model), 4)
    for server in found.servers:
        yield from _fact(_("Server"), _server(server), 4)
    for note in found.notes:
        yield from textwrap.wrap(note, WIDTH, initial_indent="    ! ", subsequent_indent="      ",
                                 break_long_words=False, break_on_hyphens=False)


def _server(report: ServerReport) -> str:
    if report.problem is not None:
        return _("{address}: cannot be used").format(address=report.address)
    parts = [_("{address}: {model}").format(address=report.address, model=report.model)]
    if report.version:
        parts.append(f"vLLM {report.version}")
    if report.context:
        parts.append(_("context {n}").format(n=report.context))
    parts.append(_("reads pages as it should") if report.good else _("something is wrong"))
    return ", ".join(parts)


def _verdict(found: Diagnosis) -> Iterator[str]:
    usable = [examined.entry.name for examined in found.engines if examined.can_start]
    if found.can_start:
        yield _("The chosen engine “{engine}” can start.").format(engine=found.chosen)
    elif usable:
        yield _("The chosen engine “{engine}” cannot start; these can: {others} (--engine, or in "
                "the run settings).").format(engine=found.chosen, others=", ".join(usable))
    else:
        yield _("No engine can start here.")
