"""The Ascend side of the examination as a person reads it in a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from desktop.doctor.ascend import Report
from desktop.doctor.ascend_smi import Npu
from desktop.doctor.layout import fact, problem, size
from desktop.engines.ascend.support import TITLES, Level, Verdict
from desktop.i18n import _

_MARKS = {Level.GOOD: "✓", Level.WARNING: "!", Level.PROBLEM: "✗"}


def lines(found: Report) -> Iterator[str]:
    """FOUND, line by line."""
    yield _("ASCEND")
    host = found.host
    nodes = host.nodes
    yield from fact(_("Nodes"), ", ".join(f"davinci{number}" for number in nodes.numbers)
                    or _("none"))
    toolkit, atb = host.environment.places.toolkit, host.environment.places.atb
    yield from fact(_("Driver"), _part(host.driver_folder,
                                       found.npus.driver or host.driver_version))
    yield from fact("CANN", _part(toolkit.path, toolkit.version) if toolkit else _part("", ""))
    yield from fact("NNAL", _part(atb, ""))
    for npu in found.npus.found:
        chosen = npu.visible in found.chosen
        yield from fact("NPU", _npu(npu) + (_(" – the one to be used") if chosen else ""))
        for holder in npu.holders:
            yield from fact("", _("used by {name} {pid}: {memory}").format(
                name=holder.name or _("process"), pid=holder.pid, memory=size(holder.bytes)))
    for verdict in found.versions:
        yield from fact(_(TITLES[verdict.what]), _verdict(verdict))
    if found.host.shared_memory >= 0:
        yield from fact("/dev/shm", size(found.host.shared_memory))
    for each in found.problems:
        yield from problem("✗", each, 2)
    for each in found.warnings:
        yield from problem("!", each, 2)


def _part(folder: str, version: str) -> str:
    return ", ".join(filter(None, (version, folder))) or _("not found")


def _npu(npu: Npu) -> str:
    text = _("{number}: {name}, {health}, {free} free of {total}").format(
        number=npu.visible, name=npu.name, health=npu.health, free=size(npu.free),
        total=size(npu.total))
    if npu.number != npu.visible:
        text += _(", node davinci{n}").format(n=npu.number)
    if npu.busy is not None:
        text += _(", {n} % busy").format(n=npu.busy)
    return text


def _verdict(verdict: Verdict) -> str:
    text = f"{_MARKS[verdict.level]} {verdict.found or _('not installed')}"
    if verdict.wanted and verdict.level is not Level.GOOD:
        text += _(" (wanted: {version})").format(version=verdict.wanted)
    return text
