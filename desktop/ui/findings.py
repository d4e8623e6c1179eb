"""What was found out about engines, put for the report window. Qt-free but for its types."""

from __future__ import annotations

from collections.abc import Sequence

from desktop.client.interpreter import Report as InterpreterReport
from desktop.engines.remote.probe import Report as ServerReport
from desktop.errors import Problem
from desktop.i18n import _, ngettext
from desktop.jobs.events import EngineState, EngineView
from desktop.ui import words
from desktop.ui.dialogs.report import Found, Item
from desktop.ui.panels import notes
from desktop.ui.remedies import Remedy, remedy

_MARKS = {True: "✓", False: "✗", None: "?"}


def engine(view: EngineView, title: str) -> Found:
    """What the engine got, or why it does not run."""
    said = words.engine_words(view, title)
    if view.state is EngineState.READY and view.ready is not None:
        return Found(said.text, [Item("ok", _("What the engine got"),
                                      notes.engine_facts(view.ready), notes=view.ready.notes)])
    if view.problem is not None:
        return Found(said.text, [Item("error", _("Why it does not run"),
                                      problems=[("error", view.problem)])],
                     remedy(view.problem))
    return Found(said.text)


def interpreter(report: InterpreterReport) -> Found:
    """An interpreter: what it has, what it lacks, the command that helps."""
    facts = [("Python", report.python)] if report.python else []
    for name in ("vllm", "torch", "transformers", "vllm-ascend", "torch-npu", "msgspec",
                 "pillow"):
        if name in report.versions:
            source = report.distributions.get(name)
            facts.append((notes.TITLES.get(name, name),
                          report.versions[name] + (f" ({source})" if source else "")))
    if report.devices or report.device_kind:
        names = ", ".join(report.devices) or report.device_kind
        facts.append((_("Computes on"), names))
    remarks = list(report.notes)
    if report.repairs:
        remarks.append(_("Verso's vLLM plugin repairs: {names}.").format(
            names=", ".join(report.repairs)))
    summary = _("This Python can run the engine.") if report.usable else _(
        "This Python cannot run the engine.")
    item = Item("ok" if report.usable else "error", report.path, facts,
                [("error", problem) for problem in report.problems], remarks)
    offer = remedy(report.problems[0]) if report.problems else None
    # To check it once more is what "look again" does.
    return Found(summary, [item], offer if offer and offer.action != "check" else None)


def refused(problem: Problem) -> Found:
    """Nothing could be looked at."""
    return Found(problem.message, [Item("error", _("Why"), problems=[("error", problem)])],
                 remedy(problem))


def servers(reports: Sequence[ServerReport]) -> Found:
    """What each server is like."""
    good = sum(report.good for report in reports)
    summary = ngettext("{good} of {n} server reads pages as it should.",
                       "{good} of {n} servers read pages as they should.", len(reports)).format(
        good=good, n=len(reports))
    keys = [report.problem for report in reports
            if report.problem is not None and report.problem.code.startswith("remote.key")]
    offer: Remedy | None = remedy(keys[0]) if keys else None
    return Found(summary, [_server(report) for report in reports], offer)


def _server(report: ServerReport) -> Item:
    problem = report.problem
    if problem is not None:
        return Item("error", report.address, problems=[("error", problem)])
    facts = [(_("Model"), report.model)]
    if report.version:
        facts.append(("vLLM", report.version))
    if report.context:
        facts.append((_("Context"), _("{n} tokens").format(n=words.count_of(report.context))))
    if report.cache_tokens:
        facts.append((_("KV cache"), _("{n} tokens").format(
            n=words.count_of(report.cache_tokens))))
    if report.page_tokens:
        facts.append((_("A page costs"), _("{n} tokens").format(
            n=words.count_of(report.page_tokens))))
    facts.append((_("Seen"), words.DOT.join(
        f"{_MARKS[value]} {name}" for name, value in (
            (_("streams"), report.streams), (_("keeps grounding tags"), report.tags),
            (_("no-repeat n-gram works"), report.guard)))))
    tone = "ok" if report.good and not report.findings else "warning" if report.good else "error"
    return Item(tone, report.address, facts, [
        ("error" if found.level.value == "fault" else "warning", found.problem)
        for found in report.findings])
