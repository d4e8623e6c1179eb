"""The examination as rows in groups: what was looked at, a verdict, what was found, what helps.

What a window shows; the terminal has lines of its own (:mod:`desktop.doctor.text`). Every problem
and warning of the examination stands at exactly one row.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from desktop import __version__
from desktop.doctor import ascend, npu_rows
from desktop.doctor.diagnosis import Diagnosis
from desktop.doctor.engines import Examination
from desktop.doctor.layout import size
from desktop.doctor.machine import Disk, Machine
from desktop.doctor.marks import Mark, Row, worst
from desktop.doctor.text import interpreter_facts, last_start_facts, model_facts
from desktop.engines.remote.probe import Report as ServerReport
from desktop.errors import Problem
from desktop.i18n import N_, _, ngettext

__all__ = ["Group", "Kind", "Mark", "Row", "Verdict", "groups", "verdict"]


class Kind(enum.Enum):
    """What a group is about, in the order in which they are shown."""

    MACHINE = "machine"
    BUILT_IN = "built-in"
    GPU = "gpu"
    NPU = "npu"
    SERVERS = "servers"
    MODELS = "models"


_TITLES = {Kind.MACHINE: N_("Machine"), Kind.BUILT_IN: N_("Built-in engine"), Kind.GPU: "GPU",
           Kind.NPU: "NPU", Kind.SERVERS: N_("Remote servers"), Kind.MODELS: N_("Models")}
_ON_MACHINE = ("ascend.disk", "ascend.host_memory")
"""What the NPUs' side finds wrong with the machine stands there."""


@dataclass(frozen=True)
class Group:
    """Rows about one thing."""

    kind: Kind
    title: str
    rows: tuple[Row, ...]

    @property
    def mark(self) -> Mark:
        """The worst of its rows."""
        return worst(row.mark for row in self.rows)


@dataclass(frozen=True)
class Verdict:
    """The whole in a sentence, and how much there is to do in a second one."""

    mark: Mark
    text: str
    more: str = ""


def verdict(found: Diagnosis, shown: Sequence[Group]) -> Verdict:
    """What to say above the groups SHOWN of FOUND."""
    rows = [row for group in shown for row in group.rows]
    bad, doubtful = (sum(row.mark is mark for row in rows) for mark in (Mark.WRONG, Mark.DOUBT))
    parts = []
    if bad:
        parts.append(ngettext("{n} thing is wrong", "{n} things are wrong", bad).format(n=bad))
    if doubtful:
        parts.append(ngettext("{n} is worth a look", "{n} are worth a look", doubtful).format(
            n=doubtful))
    title = next((_(each.entry.title) for each in found.engines
                  if each.entry.name == found.chosen), found.chosen)
    if found.can_start:
        text = _("The chosen engine “{engine}” can start.").format(engine=title)
        mark = Mark.GOOD
    else:
        text = _("The chosen engine “{engine}” cannot start.").format(engine=title)
        mark = Mark.WRONG
    return Verdict(mark, text, "; ".join(parts) + "." if parts else _("Nothing else stood out."))


def groups(found: Diagnosis) -> tuple[Group, ...]:
    """FOUND in groups; those that say nothing are left out."""
    of_machine, rest = _split(found)
    made: dict[Kind, Iterator[Row]] = {
        Kind.MACHINE: _machine(found, of_machine),
        Kind.BUILT_IN: _plain_engines(found),
        Kind.GPU: _gpu(found),
        Kind.NPU: npu_rows.rows(found, rest, lambda each: _with_python(found, each)),
        Kind.SERVERS: _servers(found),
        Kind.MODELS: _models(found),
    }
    shown = (Group(kind, _(_TITLES[kind]), tuple(rows)) for kind, rows in made.items())
    return tuple(group for group in shown if group.rows)


def _split(found: Diagnosis) -> tuple[list[Problem], list[tuple[Mark, Problem]]]:
    """What the NPUs' side says of the machine itself, and of everything else."""
    if found.ascend is None:
        return [], []
    told = [*((Mark.WRONG, each) for each in found.ascend.problems),
            *((Mark.DOUBT, each) for each in found.ascend.warnings)]
    return ([each for _mark, each in told if each.code in _ON_MACHINE],
            [(mark, each) for mark, each in told if each.code not in _ON_MACHINE])


# --- the machine


def _machine(found: Diagnosis, told: Sequence[Problem]) -> Iterator[Row]:
    machine = found.machine
    yield Row("Verso", f"{__version__}, {machine.system}")
    yield Row("Python", f"{machine.python} ({machine.interpreter})", Mark.GOOD)
    yield Row(_("Processor"), ngettext("{n} core", "{n} cores", machine.cores).format(
        n=machine.cores), Mark.GOOD)
    if machine.memory_total:
        yield _with(Row(_("Memory"), _memory(machine), Mark.GOOD),
                    [each for each in told if each.code == "ascend.host_memory"], Mark.DOUBT)
    for disk in machine.disks_to_tell():
        yield _disk(disk, told)
    for problem in found.settings:
        yield Row(_("Settings"), problem.message, Mark.DOUBT, hint=problem.hint,
                  problems=(problem,))


def _memory(machine: Machine) -> str:
    text = _("{free} free of {total}").format(free=size(machine.memory_free),
                                              total=size(machine.memory_total))
    if machine.memory_limit and machine.memory_limit < machine.memory_total:
        text += _(", this process may take {limit}").format(limit=size(machine.memory_limit))
    return text


def _disk(disk: Disk, told: Sequence[Problem]) -> Row:
    title = {"data": _("Disk of the data"), "models": _("Disk of the models"),
             "cache": _("Disk of the cache")}[disk.what]
    if disk.problem:
        return Row(title, disk.problem, Mark.WRONG)
    if disk.free < 0:
        return Row(title, _("{path} does not answer").format(path=disk.path), Mark.DOUBT,
                   hint=_("A network drive may be gone: check that it is mounted."))
    row = Row(title, _("{free} free in {path}").format(free=size(disk.free), path=disk.path),
              Mark.GOOD)
    return _with(row, [each for each in told if each.code == "ascend.disk"]
                 if disk.what == "models" else (), Mark.DOUBT)


def _with(row: Row, problems: Sequence[Problem], mark: Mark) -> Row:
    """ROW with PROBLEMS, which are as bad as MARK."""
    return replace(row, mark=mark, problems=(*row.problems, *problems)) if problems else row


# --- engines


def _plain_engines(found: Diagnosis) -> Iterator[Row]:
    """Those that need neither a device nor a server."""
    for each in found.engines:
        if not _on_gpus(each) and each.entry.name not in ascend.ENGINES and not _remote(each):
            yield _engine(found, each)


def _on_gpus(each: Examination) -> bool:
    return each.entry.name == "vllm"


def _remote(each: Examination) -> bool:
    return each.entry.name == "remote"


def _engine(found: Diagnosis, each: Examination) -> Row:
    """Whether it can start. What is wrong with its model stands among the models, unless it is
    the chosen one: what keeps that from starting is told where it is looked for first."""
    chosen = each.entry.name == found.chosen
    starts = found.starts(each)
    # An engine that nobody uses may well not be there.
    mark = Mark.GOOD if starts else Mark.WRONG if chosen else Mark.NOTE
    text = (_("the chosen one") + ". " if chosen else "") + _(each.entry.summary)
    problems = tuple(problem for problem in each.problems if not (
        problem.code.startswith("model.") or found.machine.told_of(problem)))
    if not starts and (each.can_start or any(map(found.machine.told_of, each.problems))):
        text += " " + _("What it lacks is told above.")
    notes = each.notes if not each.servers else ()
    if each.last is not None:
        notes = (*notes, _("Last start: {facts}").format(facts=last_start_facts(each.last)))
    return Row(_(each.entry.title), text[:1].upper() + text[1:], mark, problems=problems,
               notes=notes,
               word=_("can start") if starts else _("cannot start"))


def _with_python(found: Diagnosis, each: Examination) -> Iterator[Row]:
    """The engine, and the Python that runs it."""
    yield _engine(found, each)
    report = each.interpreter
    if report is not None:
        yield Row(_("Its Python"), f"{report.path}: {interpreter_facts(report)}",
                  Mark.GOOD if report.usable else Mark.NOTE)


def _gpu(found: Diagnosis) -> Iterator[Row]:
    gpus = found.machine.gpus
    if gpus.problem is not None:
        yield Row("nvidia-smi", gpus.tool, Mark.WRONG, problems=(gpus.problem,))
    elif not gpus.found:
        yield Row(_("Devices"), _("No NVIDIA GPU.") if gpus.tool else
                  _("No NVIDIA GPU (there is no nvidia-smi)."), Mark.NOTE, word=_("none"))
    for gpu in gpus.found:
        device = gpu.device
        text = _("{name}, {free} free of {total}, driver {version}").format(
            name=device.name, free=size(device.free), total=size(device.total),
            version=gpu.driver)
        if gpu.busy is not None:
            text += _(", {n} % busy").format(n=gpu.busy)
        notes = [f"{part.name}: {part.uuid}" for part in gpu.parts]
        notes += [_("used by {name} {pid}: {memory}").format(
            name=user.name or _("process"), pid=user.pid, memory=size(user.bytes))
            for user in device.users]
        yield Row(_("GPU {number}").format(number=device.number), text, Mark.GOOD,
                  notes=tuple(notes))
    for each in filter(_on_gpus, found.engines):
        yield from _with_python(found, each)


# --- servers and models


def _servers(found: Diagnosis) -> Iterator[Row]:
    for each in filter(_remote, found.engines):
        chosen = each.entry.name == found.chosen
        broken = {server.problem for server in each.servers}
        row = _engine(found, each)
        problems = tuple(problem for problem in row.problems if problem not in broken)
        row = replace(row, problems=problems)
        if not chosen and [problem.code for problem in problems] == ["remote.no_servers"]:
            row = replace(row, problems=(), word=_("none set"), mark=Mark.NOTE)
        yield row
        for server in each.servers:
            yield _server(server, chosen)


def _server(server: ServerReport, chosen: bool) -> Row:
    bad = Mark.WRONG if chosen else Mark.DOUBT
    if server.problem is not None:
        return Row(server.address, _("cannot be used"), bad, problems=(server.problem,))
    parts = [server.model, f"vLLM {server.version}" if server.version else "",
             _("context {n}").format(n=server.context) if server.context else ""]
    mark = (Mark.GOOD if server.good and not server.findings else
            Mark.DOUBT if server.good else bad)
    return Row(server.address, ", ".join(filter(None, parts)), mark,
               problems=tuple(each.problem for each in server.findings))


def _models(found: Diagnosis) -> Iterator[Row]:
    """Each model's folder once, though several engines would load it."""
    needing = [each for each in found.engines if each.model is not None or any(
        problem.code.startswith("model.") for problem in each.problems)]
    chosen = any(each.entry.name == found.chosen for each in needing)
    done: set[str] = set()
    for each in sorted(needing, key=lambda each: each.entry.name != found.chosen):
        folder = each.model.folder if each.model is not None else ""
        if folder in done:
            continue
        done.add(folder)
        problems = tuple(problem for problem in each.problems if problem.code.startswith("model."))
        text = model_facts(each.model) if each.model is not None else _("not here")
        mark = Mark.GOOD if not problems else Mark.WRONG if chosen else Mark.NOTE
        word = "" if not problems else _("not here") if each.model is None else _("incomplete")
        yield Row("DeepSeek-OCR-2", text, mark, problems=problems, word=word)
