"""Several servers as one: who gets the next page, who rests, who may try again.

A server that fails rests, twice as long each time, and is asked for its models before it gets a
page again; then it gets a single one until that has gone well. One that has too much to do is
left alone for as long as it asks, and gets fewer pages at once from then on.

How many pages a server can work on at once it does not say. Where nobody chose a number it begins
with a few, and gets more as long as it begins them promptly: what waits in a server's own queue
could be read by another, or go behind a page that is looked at.
"""

from __future__ import annotations

import asyncio
import enum
import heapq
import logging
import random
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Generic, List, Optional, Tuple, TypeVar

from desktop.engines.remote.errors import (
    Busy,
    Passing,
    ServerError,
    ServersGone,
    Silent,
)
from desktop.errors import VersoError
from desktop.i18n import _

FIRST_REST = 1.0
LONGEST_REST = 60.0
"""Seconds."""
OUTAGE = 90.0
"""Seconds without any server after which pages no longer wait."""
FEW = 16
"""Pages at once that a server begins with."""
PROMPT = 5.0
LATE = 20.0
"""Seconds to a page's first text: up to the first a server gets more, from the second on less."""

_log = logging.getLogger(__name__)
S = TypeVar("S")


class State(enum.Enum):
    """Of a server."""

    UP = "up"
    TRIAL = "trial"
    """One page, to see."""
    RESTING = "resting"
    OUT = "out"
    """Nothing will change by waiting (wrong key, no such model); looked at again all the same."""


class Member(Generic[S]):
    """A server in the pool."""

    def __init__(self, server: S, name: str, limit: int) -> None:
        self.server = server
        self.name = name
        self.most = limit
        """Pages at once when all is well."""
        self.limit = limit
        """Pages at once now."""
        self.steered = False
        """Whether ``limit`` follows how promptly pages begin."""
        self.load = 0
        self.state = State.UP
        self.failures = 0
        """In a row."""
        self.problem = ""
        """Why it is not up, in words."""
        self.error: Optional[VersoError] = None
        """Why it is out."""
        self.until = 0.0
        """When its rest ends, on the monotonic clock."""
        self.epoch = 0
        """Rises with each failure: what was begun before it and fails too is no new failure."""
        self.used = 0

    def allow(self, most: int, *, steered: bool) -> None:
        """At most MOST pages at once from now on: at once as many, or STEERED."""
        begun = self.steered and steered
        self.most, self.steered = most, steered
        if self.failures:
            self.limit = min(self.limit, most)
        elif not begun:
            self.limit = min(most, FEW) if steered else most
        else:
            self.limit = min(self.limit, most)

    @property
    def room(self) -> int:
        """Pages it can take now."""
        if self.state is State.UP:
            return self.limit - self.load
        return 1 - self.load if self.state is State.TRIAL else 0


class Lease(Generic[S]):
    """A page's place at a server, to be given back once."""

    def __init__(self, member: Member[S]) -> None:
        self.member = member
        self.server = member.server
        self.epoch = member.epoch


class Pool(Generic[S]):
    """Used in one event loop."""

    def __init__(self, members: Iterable[Member[S]],
                 look: Callable[[S], Awaitable[None]],
                 grown: Callable[[], None] = lambda: None) -> None:
        """LOOK asks a server whether it is well; raises Passing or VersoError where not. GROWN is
        called whenever there is room for more pages than before; it must return at once."""
        self.members = list(members)
        self._look = look
        self._grown = grown
        self._waiting: List[Tuple[int, int, asyncio.Future[Lease[S]], frozenset[str]]] = []
        self._turn = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._timer: Optional[asyncio.TimerHandle] = None
        self._down_since = 0.0

    async def close(self) -> None:
        """Stop looking after servers that rest."""
        if self._timer is not None:
            self._timer.cancel()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def turn(self) -> int:
        """A place in the order of pages, kept by a page that is done again."""
        self._turn += 1
        return self._turn

    async def take(self, priority: int, turn: int,
                   avoid: frozenset[str] = frozenset()) -> Lease[S]:
        """A place at the server with the least to do, as soon as one is free.

        AVOID: names of servers to be taken only when no other is up. Waiting pages get theirs
        in the order of (PRIORITY, TURN). Raises :class:`ServersGone`.
        """
        self._check()
        future: asyncio.Future[Lease[S]] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (priority, turn, future, avoid))
        self._serve()
        try:
            return await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled() and future.exception() is None:
                self._free(future.result())
            raise

    def done(self, lease: Lease[S], error: Optional[BaseException] = None) -> None:
        """Give LEASE back. ERROR: what went wrong at the server; None: all is well, or what
        went wrong has nothing to do with it."""
        member = lease.member
        member.load -= 1
        if lease.epoch == member.epoch:
            if error is None:
                self._well(member)
            elif isinstance(error, Busy):
                # It took all others.
                member.limit = max(1, min(member.limit, member.load))
                self._failed(member, error.reason, error.after, look=False)
            elif isinstance(error, Silent):
                member.limit = max(1, min(member.limit, member.load // 2))
                self._failed(member, error.reason, error.after)
            elif isinstance(error, Passing):
                self._failed(member, error.reason, error.after)
            elif isinstance(error, ServerError):
                self._failed(member, error.problem().message, 0.0, error)
        self._serve()

    def release(self, lease: Lease[S]) -> None:
        """Give LEASE back without a word on the server: the page was stopped."""
        self._free(lease)

    def begun(self, lease: Lease[S], seconds: float) -> None:
        """A page's first text came SECONDS after it was sent."""
        member = lease.member
        if not member.steered or lease.epoch != member.epoch:
            return
        if seconds <= PROMPT:
            self._raise(member)
            self._serve()
        elif seconds >= LATE:
            member.limit = max(1, member.limit - 1)

    def rest(self, member: Member[S], error: BaseException) -> None:
        """MEMBER failed before it had any page."""
        if isinstance(error, VersoError):
            self._failed(member, error.problem().message, 0.0, error)
        else:
            reason = error.reason if isinstance(error, Passing) else type(error).__name__
            self._failed(member, reason, getattr(error, "after", 0.0))

    def usable(self) -> list[Member[S]]:
        """Those that get pages."""
        return [m for m in self.members if m.state in (State.UP, State.TRIAL)]

    # --- inside

    def _free(self, lease: Lease[S]) -> None:
        lease.member.load -= 1
        self._serve()

    def _serve(self) -> None:
        """Hand out what is free."""
        while self._waiting:
            future, avoid = self._waiting[0][2:]
            if not future.done():
                member = self._choice(avoid)
                if member is None:
                    return
                member.load += 1
                self._turn += 1
                member.used = self._turn
                future.set_result(Lease(member))
            heapq.heappop(self._waiting)

    def _choice(self, avoid: frozenset[str]) -> Optional[Member[S]]:
        """The one with the least to do for its size; of equals the one that was idle longest."""
        free = [m for m in self.members if m.room > 0]
        # Where all others are full the avoided one serves: waiting would hold up pages behind.
        wanted = [m for m in free if m.name not in avoid]
        return min(wanted or free, default=None,
                   key=lambda m: ((m.load + 1) / max(1, m.limit), m.used))

    def _well(self, member: Member[S]) -> None:
        if member.state is State.TRIAL:
            _log.info("server %s works again", member.name)
        member.failures = 0
        if member.state is not State.OUT:
            member.state, member.problem, member.error = State.UP, "", None
        if not member.steered:
            self._raise(member)
        self._down_since = 0.0

    def _raise(self, member: Member[S]) -> None:
        """One more page at once, where that is not too many."""
        if member.limit < member.most:
            member.limit += 1
            self._grown()

    def _failed(self, member: Member[S], problem: str, after: float,
                error: Optional[VersoError] = None, *, look: bool = True) -> None:
        member.epoch += 1
        member.failures += 1
        member.problem, member.error = problem, error
        member.state = State.RESTING if error is None else State.OUT
        seconds = min(LONGEST_REST, FIRST_REST * 2 ** min(member.failures - 1, 10))
        seconds = max(after, LONGEST_REST if error else seconds * random.uniform(0.8, 1.2))
        member.until = time.monotonic() + seconds
        _log.warning("server %s rests for %.1f s: %s", member.name, seconds, problem)
        task = asyncio.get_running_loop().create_task(self._revive(member, member.epoch, look))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        self._check_later()

    async def _revive(self, member: Member[S], epoch: int, look: bool) -> None:
        """After its rest, let MEMBER try; or let it rest again."""
        await asyncio.sleep(max(0.0, member.until - time.monotonic()))
        if member.epoch != epoch:
            return
        try:
            if look:
                await self._look(member.server)
        except (Passing, VersoError) as error:
            if member.epoch == epoch:
                self.rest(member, error)
            return
        except Exception as error:  # noqa: BLE001 - or the server would rest for ever
            # Its kind is logged by "rest"; its words might hold what was sent.
            if member.epoch == epoch:
                self.rest(member, error)
            return
        if member.epoch == epoch:
            member.state = State.TRIAL if look else State.UP
            member.error = None
            self._serve()
            self._grown()

    def _check_later(self) -> None:
        """See to it that nobody waits for ever."""
        if self.usable():
            self._down_since = 0.0
            return
        self._down_since = self._down_since or time.monotonic()
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(
                min(1.0, OUTAGE / 10), self._check_timer)

    def _check_timer(self) -> None:
        self._timer = None
        try:
            self._check()
        except VersoError as error:
            waiting, self._waiting = self._waiting, []
            for entry in waiting:
                if not entry[2].done():
                    entry[2].set_exception(error)
        if self._waiting:
            self._check_later()

    def _check(self) -> None:
        """Raise where there is no server, and none to be expected soon."""
        if not self.members or self.usable():
            return
        out = [m for m in self.members if m.state is State.OUT and m.error is not None]
        now = time.monotonic()
        soonest = min(m.until for m in self.members)
        over = bool(self._down_since) and now - self._down_since > OUTAGE
        if len(out) == len(self.members) or over or soonest - now > OUTAGE:
            raise self.gone()

    def gone(self) -> ServersGone:
        """Why there is no server."""
        return ServersGone(reason=" · ".join(
            f"{m.name}: {m.problem.rstrip('.') or _('no answer')}" for m in self.members) + ".")
