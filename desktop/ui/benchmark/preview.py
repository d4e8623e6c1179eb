"""What a measurement will take, before it begins. Qt-free."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from desktop.benchmark.plan import Plan
from desktop.i18n import _, ngettext
from desktop.ui import words


@dataclass(frozen=True)
class Known:
    """What earlier runs of the engine tell."""

    speeds: Mapping[int, float] = field(default_factory=dict)
    """Pages a second by pages at once."""
    start: float = 0.0
    """Seconds its start takes."""


def text(plan: Plan, known: Known) -> str:
    """Requests and time of PLAN, in sentences."""
    requests = plan.expected_requests()
    seconds = plan.expected_seconds(known.speeds, known.start)
    first = ngettext("{n} page will be read", "{n} pages will be read", requests).format(
        n=words.count_of(requests))
    if plan.gain is not None:
        first = ngettext("At least {n} page will be read", "At least {n} pages will be read",
                         requests).format(n=words.count_of(requests))
    if seconds is None:
        first += ". " + _("How long that takes is known once this engine was measured.")
    else:
        first += ", " + _("about {time}.").format(time=words.seconds_of(max(1.0, seconds)))
    if plan.time_cap:
        first += " " + _("It ends after {time} at the latest.").format(
            time=words.seconds_of(plan.time_cap))
    return first + " " + _("Conversion is paused meanwhile.")
