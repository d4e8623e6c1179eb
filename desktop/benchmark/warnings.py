"""What a reader of the figures should know: scatter, differing outputs, caches, slow drawing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from desktop.benchmark.plan import Plan, in_words
from desktop.benchmark.results import Ended, LevelResult
from desktop.benchmark.workload import Workload
from desktop.i18n import _, ngettext

SCATTER = 0.10
"""Deviation as a share of the mean, from which on rounds scatter."""
STARVED = 0.02
"""Share of the time in which a place was free, from which on it is said."""


def warnings(engine: str, plan: Plan, workload: Workload, levels: Sequence[LevelResult],
             caches: Mapping[str, str]) -> tuple[str, ...]:
    """In sentences, the most important first."""
    return (
        *_scatter(levels), *_estimated(levels), *_differing(plan, levels),
        *_caches(plan, levels, caches), *_warm(engine, plan, levels), *_crowded(levels),
        *_starved(plan.ahead, levels), *_cut(levels), *_throttled(levels), *_unfinished(levels),
        *_left_out(workload))


def _scatter(levels: Sequence[LevelResult]) -> Iterator[str]:
    for level in levels:
        spread = level.output_tps or level.pages_per_s
        if spread is not None and spread.scatter > SCATTER:
            yield _("{level}: rounds scatter by {percent:.0f} % – something else may be using the "
                    "machine; more rounds or more pages a round give a firmer figure.").format(
                level=name(level), percent=100 * spread.scatter)


def _estimated(levels: Sequence[LevelResult]) -> Iterator[str]:
    if any(each.output_tokens and each.prompt_tokens is None
           for level in levels for each in level.rounds):
        yield _("The engine does not say how many tokens it works on: those of the text are "
                "counted as they arrive, and those of prompts and pages are not known.")


def _differing(plan: Plan, levels: Sequence[LevelResult]) -> Iterator[str]:
    """Greedy outputs that are not the same everywhere."""
    if plan.unique:
        return  # the pages are not the same either
    outputs: dict[str, set[str]] = {}
    for level in levels:
        for one in level.requests:
            if one.counted and one.digest:
                outputs.setdefault(one.page, set()).add(one.digest)
    differing = sum(len(found) > 1 for found in outputs.values())
    if differing:
        yield ngettext(
            "{count} of {all} pages gave different text in different rounds or levels, though "
            "it is read without chance: numbers round differently when pages are computed "
            "together.",
            "{count} of {all} pages gave different texts in different rounds or levels, though "
            "they are read without chance: numbers round differently when pages are computed "
            "together.", differing).format(count=differing, all=len(outputs))


def _caches(plan: Plan, levels: Sequence[LevelResult],
            caches: Mapping[str, str]) -> Iterator[str]:
    if plan.unique or not any(level.rounds for level in levels):
        return
    if "on" in caches.values():
        yield _("Pages repeat and a cache of the engine is on ({names}): the figures are better "
                "than those of pages that are all different. Switch it off, or use "
                "--unique.").format(names=", ".join(
            key for key, state in caches.items() if state == "on"))
    elif "unknown" in caches.values():
        yield _("Pages repeat, and whether the server caches them is not known: with --unique "
                "no cache can help.")


def _warm(engine: str, plan: Plan, levels: Sequence[LevelResult]) -> Iterator[str]:
    if engine == "remote" and any(level.cold is not None for level in levels):
        yield _("A server elsewhere is not started anew: its cold rounds are as warm as it was.")


def _crowded(levels: Sequence[LevelResult]) -> Iterator[str]:
    room = min((level.ready.capacity for level in levels
                if level.rounds and level.ready is not None
                and 0 < level.ready.capacity < level.concurrency), default=0)
    if room:
        yield ngettext(
            "By its own account the engine works on {count} page at once: of more, some may wait "
            "inside it, which is part of their times.",
            "By its own account the engine works on {count} pages at once: of more, some may wait "
            "inside it, which is part of their times.", room).format(count=room)


def _starved(ahead: bool, levels: Sequence[LevelResult]) -> Iterator[str]:
    for level in levels:
        seconds = sum(each.seconds for each in level.rounds)
        starved = sum(each.starved for each in level.rounds)
        if seconds and starved > STARVED * seconds:
            said = _("{level}: for {percent:.0f} % of the time the engine could have begun another "
                     "page, which was not ready yet.").format(
                level=name(level), percent=100 * starved / seconds)
            yield said if ahead else said + " " + _(
                "In a conversion it waits for drawing likewise; --draw ahead leaves that out.")


def _cut(levels: Sequence[LevelResult]) -> Iterator[str]:
    cut = sum(level.outcomes.get("length", 0) for level in levels)
    if cut:
        yield ngettext("{count} page was cut at the limit of tokens; it counts as throughput.",
                       "{count} pages were cut at the limit of tokens; they count as throughput.",
                       cut).format(count=cut)


def _throttled(levels: Sequence[LevelResult]) -> Iterator[str]:
    for level in levels:
        for device in level.devices:
            if device.throttled:
                yield _("{level}: {device} was slowed down ({reasons}).").format(
                    level=name(level), device=device.device, reasons=", ".join(device.throttled))


def _unfinished(levels: Sequence[LevelResult]) -> Iterator[str]:
    for level in levels:
        if level.ended is not Ended.COMPLETE:
            why = {Ended.FAILED: _("it failed"), Ended.INTERRUPTED: _("it was interrupted"),
                   Ended.TIME_CAP: _("the time cap was reached")}[level.ended]
            if not level.rounds and level.problem is not None:
                continue  # what went wrong is said in full
            if not level.rounds:
                yield _("{level}: {why} before a round that counts was finished.").format(
                    level=name(level), why=why)
                continue
            yield ngettext("{level}: {why}; {count} finished round is kept.",
                           "{level}: {why}; {count} finished rounds are kept.",
                           len(level.rounds)).format(
                level=name(level), why=why, count=len(level.rounds))


def _left_out(workload: Workload) -> Iterator[str]:
    for path, problem in workload.left_out:
        yield _("{path} is left out: {message}").format(path=path, message=problem.message)


def name(level: LevelResult) -> str:
    """A level in words."""
    return in_words(str(level.strategy), level.concurrency)
