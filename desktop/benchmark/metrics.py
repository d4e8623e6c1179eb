"""From times to figures. Pure functions; definitions as in ``vllm bench serve``:

* TTFT: from handing a page over to its first token;
* TPOT: (last token − first token) ÷ (tokens − 1), of pages with two or more;
* ITL: between two outputs of the engine that bring tokens, one value for each such gap. An engine
  may hand over several tokens in one output (vLLM's ``stream_interval``, speculation): then a gap
  is that of several tokens, and ``tokens_per_output`` says of how many in the mean;
* latency: from handing over to the last token;
* throughput: what the pages that count brought, by the seconds of the round;
* goodput: pages a second that keep every limit. One of a single token has a TPOT of 0 there.

Percentiles are interpolated linearly, as numpy does by default.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence

from desktop.benchmark.plan import STEADY, Goodput, Level
from desktop.benchmark.records import Distribution, Request, Round, Spread, Steady, Timing

KNEE = 0.05
"""Share of the throughput that more pages at once must bring to be worth it."""


def percentile(ordered: Sequence[float], share: float) -> float:
    """The value below which SHARE (0–1) of the ORDERED values lie; raises ValueError for none."""
    if not ordered:
        raise ValueError("no values")
    place = share * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def distribution(values: Iterable[float]) -> Distribution | None:
    """Of VALUES; None for none."""
    ordered = sorted(values)
    if not ordered:
        return None
    about = spread(ordered)
    assert about is not None
    return Distribution(len(ordered), about.mean, about.sd, percentile(ordered, 0.5),
                        percentile(ordered, 0.9), percentile(ordered, 0.99), ordered[-1])


def spread(values: Iterable[float | None]) -> Spread | None:
    """Mean and deviation of VALUES; None for none, or where one of them is missing."""
    found: list[float] = []
    for value in values:
        if value is None:
            return None
        found.append(value)
    if not found:
        return None
    mean = math.fsum(found) / len(found)
    if len(found) < 2:
        return Spread(mean, None)
    return Spread(mean, math.sqrt(math.fsum((value - mean) ** 2 for value in found)
                                  / (len(found) - 1)))


def request(timing: Timing) -> Request:
    """TIMING in short."""
    first = timing.first
    tokens = timing.output_tokens
    tpot = None
    if tokens > 1 and first is not None:
        tpot = (timing.last - first) / (tokens - 1)
    return Request(
        timing.number, timing.page, timing.outcome, timing.submitted, timing.ended,
        None if first is None else first - timing.submitted, tpot,
        timing.last - timing.submitted, timing.prompt_tokens, tokens, sum(timing.characters),
        sum(1 for count in timing.tokens if count), timing.restarts, timing.drawing,
        timing.digest, timing.problem)


def gaps(timing: Timing) -> array[float]:
    """Between the outputs that brought tokens."""
    found: array[float] = array("d")
    before: float | None = None
    for at, tokens in zip(timing.times, timing.tokens, strict=True):
        if not tokens:
            continue
        if before is not None:
            found.append(at - before)
        before = at
    return found


def good(one: Request, limits: Goodput) -> bool:
    """Whether the page keeps every limit."""
    if not one.counted:
        return False
    found = {"ttft": one.ttft if one.ttft is not None else one.latency,
             "tpot": one.tpot or 0.0, "e2el": one.latency}
    return all(found[key] * 1000 <= limit for key, limit in limits.limits.items())


def round_of(level: Level, kind: str, number: int, begin: float, timings: Sequence[Timing],
             limits: Goodput, starved: float = 0.0) -> tuple[Round, array[float]]:
    """The figures of a round that began at BEGIN, and the gaps of its pages that count."""
    end = max((timing.ended for timing in timings), default=begin)
    seconds = max(end - begin, 1e-9)
    counted = [timing for timing in timings if timing.counted]
    requests = [request(timing) for timing in timings]
    fair = [one for one in requests if one.counted]
    by_tokens = any(one.output_tokens for one in requests)
    # A page is never read without any: a server that says none does not count them.
    prompt = sum(one.prompt_tokens for one in fair) if by_tokens and any(
        one.prompt_tokens for one in requests) else None
    output = sum(one.output_tokens for one in fair) if by_tokens else None
    between: array[float] = array("d")
    for timing in counted:
        between.extend(gaps(timing))
    outputs = sum(one.outputs for one in fair)
    characters = sum(one.characters for one in fair)
    figures = Round(
        kind, number, level.concurrency, seconds, tuple(requests),
        dict(Counter(one.outcome for one in requests)), prompt, output, characters,
        None if output is None else output / seconds,
        None if output is None or prompt is None else (prompt + output) / seconds,
        len(fair) / seconds, characters / seconds,
        sum(good(one, limits) for one in fair) / seconds if limits else None,
        distribution(one.ttft for one in fair if one.ttft is not None),
        distribution(one.tpot for one in fair if one.tpot is not None),
        distribution(between), distribution(one.latency for one in fair),
        output / outputs if output is not None and outputs else None,
        steady(level, timings, output is not None, prompt is not None), starved)
    return figures, between


def steady(level: Level, timings: Sequence[Timing], by_tokens: bool,
           prompts_known: bool) -> Steady | None:
    """What the round was like while all places were taken by pages in different states; None
    where it has too few pages, or none in between.

    It begins when as many pages have ended as are read at once: they all began together. It ends
    when the last page was handed over: from then on places stay free.
    """
    # Blank pages, and those that could not be drawn, never took a place.
    timings = [timing for timing in timings if timing.counted or timing.ended > timing.submitted]
    if not level.steady or len(timings) < STEADY * level.concurrency:
        return None
    begin = sorted(timing.ended for timing in timings)[level.concurrency - 1]
    end = max(timing.submitted for timing in timings)
    seconds = end - begin
    if seconds <= 0:
        return None
    counted = [timing for timing in timings if timing.counted]
    tokens = characters = 0
    prompts = pages = 0
    for timing in counted:
        for at, count, length in zip(timing.times, timing.tokens, timing.characters, strict=True):
            if begin < at <= end:
                tokens += count
                characters += length
        if begin < timing.ended <= end:
            pages += 1
            prompts += timing.prompt_tokens
    return Steady(seconds, tokens / seconds if by_tokens else None,
                  (tokens + prompts) / seconds if prompts_known else None, pages / seconds,
                  characters / seconds)


def knee(speeds: Sequence[tuple[int, float]]) -> int | None:
    """The pages at once to use: the fewest for which no further level brings more than 5 %.
    SPEEDS: (pages at once, throughput) of each level. None where there are fewer than two."""
    if len(speeds) < 2:
        return None
    best = max(speed for _width, speed in speeds)
    return min((width for width, speed in speeds if speed * (1 + KNEE) >= best), default=None)
