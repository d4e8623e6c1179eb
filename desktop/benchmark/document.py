"""A run as one JSON document, version 1: everything that was measured, and under what.

Durations of requests are milliseconds, those of rounds and levels seconds; bytes; figures that
do not exist are null. docs/benchmark.md describes it for readers.
"""

from __future__ import annotations

import time
from typing import Any

from desktop.benchmark import metrics
from desktop.benchmark.plan import CONTINUOUS
from desktop.benchmark.records import Distribution, Request, Round, Spread, Steady
from desktop.benchmark.results import LevelResult, Result
from desktop.benchmark.sampling import Sample, Summary
from desktop.errors import Problem
from desktop.protocol.messages import EngineReady

VERSION = 1


def document(result: Result) -> dict[str, Any]:
    """RESULT for ``json.dumps``."""
    plan = result.plan
    return {
        "version": VERSION,
        "started": time.strftime("%Y-%m-%dT%H:%M:%S%z", time.localtime(result.started)),
        "seconds": _round(result.seconds), "ended": result.ended.value,
        "command": result.command,
        "engine": {
            "name": result.engine, **_ready(result.ready), "settings": dict(result.settings),
            "changed": dict(result.changed), "arguments": dict(result.engine_args)},
        "environment": dict(result.environment),
        "workload": {
            "sources": list(result.workload.sources), "files": result.workload.files,
            "pages": len(result.workload.pages), "sha256": result.workload.digest,
            "unique": plan.unique, "drawing": "ahead" if plan.ahead else "live",
            "left_out": [{"path": path, **_problem(problem)}
                         for path, problem in result.workload.left_out]},
        "plan": {
            "concurrency": list(plan.levels), "strategies": [str(one) for one in plan.strategies],
            "cold": plan.cold, "warmup": plan.warmup, "rounds": plan.rounds,
            "requests": str(plan.requests), "gain": plan.gain,
            "time_cap": plan.time_cap or None, "keep_engine": plan.keep_engine,
            "goodput_ms": dict(plan.goodput.limits) or None},
        "levels": [level_document(each) for each in result.levels],
        "knee": knee(result), "comparison": comparison(result),
        "warnings": list(result.warnings),
    }


def knee(result: Result) -> int | None:
    """The pages at once to use, from the continuous levels."""
    return metrics.knee([(each.concurrency, each.speed) for each in result.levels
                         if each.strategy == CONTINUOUS and each.speed is not None])


def comparison(result: Result) -> list[dict[str, Any]] | None:
    """Strategies against the first one; None where none are compared."""
    if not result.plan.comparison:
        return None
    first = next((each.pages_per_s.mean for each in result.levels if each.pages_per_s), None)
    found = []
    for each in result.levels:
        pages = each.pages_per_s.mean if each.pages_per_s else None
        found.append({
            "strategy": str(each.strategy), "concurrency": each.concurrency,
            "pages_per_s": _round(pages),
            "seconds_a_page": _round(1 / pages) if pages else None,
            "ratio": _round(pages / first) if pages and first else None,
            **_busy(each)})
    return found


def _busy(level: LevelResult) -> dict[str, Any]:
    """Percent of the measured rounds in which the device computed: the busiest accelerator, else
    the processor. None for servers, whose devices are not seen from here."""
    elsewhere = level.ready is not None and level.ready.engine == "remote"
    known = [(one.busy_mean, one.device) for one in level.devices
             if one.busy_mean is not None and not elsewhere]
    share, device = max([one for one in known if one[1] != "cpu"] or known, default=(None, None))
    return {"device_busy": _round(share), "device": device}


def level_document(level: LevelResult) -> dict[str, Any]:
    """One level."""
    return {
        "concurrency": level.concurrency, "strategy": str(level.strategy),
        "requests": level.level.requests, "ended": level.ended.value,
        "error": _problem(level.problem) if level.problem else None,
        "start_seconds": _round(level.start_seconds),
        "cold": round_document(level.cold) if level.cold else None,
        "warmup": [{"number": each.number, "seconds": _round(each.seconds),
                    "output_tps": _round(each.output_tps),
                    "pages_per_s": _round(each.pages_per_s), "outcomes": each.outcomes}
                   for each in level.warmups],
        "rounds": [round_document(each) for each in level.rounds],
        "seconds": _mean(level.seconds), "output_tps": _mean(level.output_tps),
        "total_tps": _mean(level.total_tps), "pages_per_s": _mean(level.pages_per_s),
        "chars_per_s": _mean(level.chars_per_s), "goodput": _mean(level.goodput),
        "sd": {"seconds": _sd(level.seconds), "output_tps": _sd(level.output_tps),
               "total_tps": _sd(level.total_tps), "pages_per_s": _sd(level.pages_per_s),
               "chars_per_s": _sd(level.chars_per_s), "goodput": _sd(level.goodput)},
        "steady": None if level.steady_pages_per_s is None else {
            "output_tps": _mean(level.steady_output_tps),
            "total_tps": _mean(level.steady_total_tps),
            "pages_per_s": _mean(level.steady_pages_per_s),
            "chars_per_s": _mean(level.steady_chars_per_s),
            "sd": {"output_tps": _sd(level.steady_output_tps),
                   "total_tps": _sd(level.steady_total_tps),
                   "pages_per_s": _sd(level.steady_pages_per_s),
                   "chars_per_s": _sd(level.steady_chars_per_s)}},
        "ttft_ms": _milliseconds(level.ttft), "tpot_ms": _milliseconds(level.tpot),
        "itl_ms": _milliseconds(level.itl), "latency_ms": _milliseconds(level.latency),
        "outcomes": level.outcomes, "failed": level.failed, "looped": level.looped,
        "engine": _ready(level.ready),
        **_busy(level), "devices": [_summary(each) for each in level.devices],
        "samples": [_sample(each, level) for each in level.samples],
    }


def round_document(one: Round) -> dict[str, Any]:
    """One round."""
    begin = min((each.submitted for each in one.requests), default=0.0)
    return {
        "number": one.number, "seconds": _round(one.seconds), "outcomes": one.outcomes,
        "prompt_tokens": one.prompt_tokens, "output_tokens": one.output_tokens,
        "characters": one.characters, "output_tps": _round(one.output_tps),
        "total_tps": _round(one.total_tps), "pages_per_s": _round(one.pages_per_s),
        "chars_per_s": _round(one.chars_per_s), "goodput": _round(one.goodput),
        "ttft_ms": _milliseconds(one.ttft), "tpot_ms": _milliseconds(one.tpot),
        "itl_ms": _milliseconds(one.itl), "latency_ms": _milliseconds(one.latency),
        "tokens_per_output": _round(one.tokens_per_output), "steady": _steady(one.steady),
        "starved_seconds": _round(one.starved),
        "requests": [_request(each, begin) for each in one.requests],
    }


def _request(one: Request, begin: float) -> dict[str, Any]:
    return {
        "number": one.number, "page": one.page, "outcome": one.outcome,
        "submitted": _round(one.submitted - begin), "ttft_ms": _ms(one.ttft),
        "tpot_ms": _ms(one.tpot), "latency_ms": _ms(one.latency),
        "prompt_tokens": one.prompt_tokens, "output_tokens": one.output_tokens,
        "characters": one.characters, "outputs": one.outputs, "restarts": one.restarts,
        "drawing_ms": _ms(one.drawing), "text": one.digest,
        **({"error": _problem(one.problem)} if one.problem else {})}


def _ready(ready: EngineReady | None) -> dict[str, Any]:
    if ready is None:
        return {"model": "", "device": "", "versions": {}, "got": None}
    return {
        "model": ready.model, "device": ready.device, "versions": ready.versions,
        "got": {"capacity": ready.capacity, "memory_used": ready.memory_used,
                "memory_total": ready.memory_total, "memory_free": ready.memory_free,
                "cache_tokens": ready.cache_tokens, "context": ready.context,
                "eager": ready.eager, "notes": list(ready.notes)}}


def _problem(problem: Problem) -> dict[str, str]:
    return {"code": problem.code, "message": problem.message, "hint": problem.hint}


def _steady(one: Steady | None) -> dict[str, Any] | None:
    return None if one is None else {
        "seconds": _round(one.seconds), "output_tps": _round(one.output_tps),
        "total_tps": _round(one.total_tps), "pages_per_s": _round(one.pages_per_s),
        "chars_per_s": _round(one.chars_per_s)}


def _milliseconds(found: Distribution | None) -> dict[str, Any] | None:
    return None if found is None else {
        "p50": _ms(found.p50), "p90": _ms(found.p90), "p99": _ms(found.p99),
        "mean": _ms(found.mean), "sd": _ms(found.sd), "max": _ms(found.most),
        "count": found.count}


def _summary(one: Summary) -> dict[str, Any]:
    return {
        "device": one.device, "name": one.name, "samples": one.samples,
        "busy_mean": _round(one.busy_mean), "busy_max": _round(one.busy_most),
        "memory_max": one.memory_most, "memory_total": one.memory_total,
        "temperature_max": one.temperature_most, "power_mean": _round(one.power_mean),
        "throttled_share": _round(one.throttled_share), "throttled": list(one.throttled)}


def _sample(sample: Sample, level: LevelResult) -> dict[str, Any]:
    begin = level.samples[0].at
    return {"at": _round(sample.at - begin), "devices": [
        {"device": one.device, "busy": _round(one.busy), "memory_used": one.memory_used,
         "temperature": one.temperature, "power": _round(one.power),
         "throttled": one.throttled} for one in sample.devices]}


def _mean(found: Spread | None) -> float | None:
    return None if found is None else _round(found.mean)


def _sd(found: Spread | None) -> float | None:
    return None if found is None else _round(found.sd)


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds * 1000, 3)


def _round(value: float | None) -> float | None:
    return None if value is None else round(value, 6)
