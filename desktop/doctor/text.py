"""The examination as a person reads it in a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Set

from desktop import __version__
from desktop.client.interpreter import Report
from desktop.doctor import ascend_text
from desktop.doctor.diagnosis import Diagnosis
from desktop.doctor.engines import Examination, Model
from desktop.doctor.layout import WIDTH, fact, size
from desktop.doctor.layout import problem as write_problem
from desktop.doctor.machine import Disk, Machine
from desktop.doctor.prepared import Prepared
from desktop.engines.remote.probe import Report as ServerReport
from desktop.errors import Problem
from desktop.i18n import _, ngettext
from desktop.jobs.starts import Start
from desktop.models.places import ORIGINS


def lines(found: Diagnosis) -> Iterator[str]:
    """FOUND, line by line."""
    yield _("Verso {version} on {system}").format(version=__version__, system=found.machine.system)
    yield ""
    yield _("MACHINE")
    yield from _machine(found.machine)
    for problem in found.settings:
        yield from write_problem("!", problem, 2)
    if found.ascend is not None:
        yield ""
        yield from ascend_text.lines(found.ascend)
    yield ""
    yield _("ENGINES")
    told: set[Problem] = set()
    for examined in found.engines:
        yield from _engine(found, examined, told)
        told.update(examined.problems)
    if found.prepared is not None:
        yield ""
        yield _("PREPARED CODE")
        yield from _prepared(found.prepared)
    yield ""
    yield from _verdict(found)


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


def last_start_facts(start: Start) -> str:
    """When an engine started last, and what it got then, in one line."""
    got = start.got
    parts = [got.device, got.model]
    if got.memory_total:
        parts.append(_("{used} of {total} held").format(used=size(got.memory_used),
                                                        total=size(got.memory_total)))
    elif got.memory_used:
        parts.append(_("{used} held").format(used=size(got.memory_used)))
    if got.cache_tokens:
        parts.append(_("KV cache of {n} tokens").format(n=got.cache_tokens))
    if got.context:
        parts.append(_("context {n}").format(n=got.context))
    if got.capacity:
        parts.append(_("{n} pages at once").format(n=got.capacity))
    if got.versions.get("vllm"):
        parts.append(_("eager") if got.eager else _("compiled graphs"))
    parts += [f"{name} {version}" for name, version in got.versions.items()]
    return _("{when}: it got {facts}").format(
        when=start.when.astimezone().strftime("%Y-%m-%d %H:%M"),
        facts=", ".join(part for part in parts if part))


def _machine(found: Machine) -> Iterator[str]:
    yield from fact("Python", f"{found.python} ({found.interpreter})")
    yield from fact(_("Processor"), ngettext("{n} core", "{n} cores", found.cores).format(
        n=found.cores))
    if found.memory_total:
        memory = _("{free} free of {total}").format(free=size(found.memory_free),
                                                    total=size(found.memory_total))
        if found.memory_limit and found.memory_limit < found.memory_total:
            memory += _(", this process may take {limit}").format(limit=size(found.memory_limit))
        yield from fact(_("Memory"), memory)
    for disk in found.disks_to_tell():
        yield from fact(_("Disk"), _disk(disk))
    gpus = found.gpus
    if gpus.problem is not None:
        yield from write_problem("✗", gpus.problem, 2)
    elif not gpus.found:
        yield from fact("GPU", _("none") if gpus.tool else _("none (no nvidia-smi)"))
    for gpu in gpus.found:
        device = gpu.device
        text = _("{number}: {name}, {free} free of {total}").format(
            number=device.number, name=device.name, free=size(device.free),
            total=size(device.total))
        if gpu.busy is not None:
            text += _(", {n} % busy").format(n=gpu.busy)
        yield from fact("GPU", text + _(", driver {version}").format(version=gpu.driver))
        for part in gpu.parts:
            yield from fact("", f"{part.name}: {part.uuid}")
        for user in device.users:
            yield from fact("", _("used by {name} {pid}: {memory}").format(
                name=user.name or _("process"), pid=user.pid, memory=size(user.bytes)))


def _disk(disk: Disk) -> str:
    what = {"data": _("data"), "models": _("models"), "cache": _("cache")}[disk.what]
    if disk.problem:
        return disk.problem
    if disk.free < 0:
        return _("{path} ({what}) does not answer").format(path=disk.path, what=what)
    return _("{free} free in {path} ({what})").format(free=size(disk.free), path=disk.path,
                                                      what=what)


def _engine(diagnosis: Diagnosis, found: Examination, told: Set[Problem]) -> Iterator[str]:
    """TOLD are the problems of engines before: what helps was said there, and is said again of
    the chosen one only."""
    starts = diagnosis.starts(found)
    chosen = found.entry.name == diagnosis.chosen
    mark = "✓" if starts else "✗"
    state = _("can start") if starts else _("cannot start")
    title = f"{_(found.entry.title)} ({found.entry.name})"
    yield f"  {mark} {title}: {state}" + (_(" – the chosen one") if chosen else "")
    for problem in found.problems:
        if diagnosis.machine.told_of(problem):
            yield "    " + _("See above, under MACHINE.")
        else:
            again = problem in told and not chosen
            yield from write_problem("✗", problem._replace(hint="") if again else problem, 4)
    if found.can_start and not starts:
        yield "    " + _("See above, under ASCEND.")
    if found.interpreter is not None:
        yield from fact("Python", f"{found.interpreter.path}: "
                         + interpreter_facts(found.interpreter), 4)
    if found.model is not None:
        yield from fact(_("Model"), model_facts(found.model), 4)
    for server in found.servers:
        yield from fact(_("Server"), _server(server), 4)
    if found.last is not None:
        yield from fact(_("Last start"), last_start_facts(found.last), 4)
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


def _prepared(found: Prepared) -> Iterator[str]:
    yield from fact(_("Folder"), found.folder)
    if found.well:
        yield from fact(_("MoE patch"), _("in place, with the lines that call it"))
    if found.model:
        yield from fact(_("Model"), found.model)
    if found.well and found.touched:
        yield from fact(_("Changed"), _("{files} (since it was prepared)").format(
            files=", ".join(found.touched)))
    for problem in found.problems:
        yield from write_problem("✗", problem, 2)
    for problem in found.warnings:
        yield from write_problem("!", problem, 2)


def _verdict(found: Diagnosis) -> Iterator[str]:
    usable = [examined.entry.name for examined in found.engines if found.starts(examined)]
    if found.can_start:
        yield _("The chosen engine “{engine}” can start.").format(engine=found.chosen)
    elif usable:
        yield _("The chosen engine “{engine}” cannot start; these can: {others} (--engine, or in "
                "the run settings).").format(engine=found.chosen, others=", ".join(usable))
    else:
        yield _("No engine can start here.")
    if found.prepared is not None and found.prepared.asked:
        yield (_("The prepared code can run.") if found.prepared.well
               else _("The prepared code cannot run."))
