"""The engine that has pages read by OpenAI-compatible servers elsewhere."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncGenerator, AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Optional

from desktop.engines.base import Engine, Finish, Output, Progress, Regions, Restarted, Text
from desktop.engines.model import fitting, outcome, prompts, sampling
from desktop.engines.remote import addresses, keys, request, upload
from desktop.engines.remote.connection import Connection, trust
from desktop.engines.remote.errors import (
    Broken,
    ContextTooSmall,
    PageGivenUp,
    Passing,
    ServerError,
    ServersGone,
    Silent,
)
from desktop.engines.remote.pool import Lease, Member, Pool
from desktop.engines.remote.probe import (
    Report,
    cache_tokens,
    choose,
    examine,
    has_guard,
    problem_of,
)
from desktop.errors import VersoError
from desktop.i18n import _
from desktop.protocol.messages import EngineReady, SubmitPage

TRIES = 4
"""Times that servers may break off on one page before it is given up."""
PAGES = 32
"""Pages at once for a server that does not tell the size of its cache."""
MOST_PAGES = 100
_BEAT = 30.0
"""Seconds after which a page that waits gives a sign of life."""
_FULL = fitting.sent(1240, 1754, {}).tokens + fitting.TYPICAL_OUTPUT
"""Tokens of a full page with its text."""
_SLACK = 64
"""Pieces of text beyond the limit before a server counts as one that ignores it."""


@dataclass
class Node:
    """A server as the engine uses it."""

    connection: Connection
    model: str = ""
    """Empty until it was seen to be of use."""
    context: int = 0
    """Tokens; 0: unknown."""
    guard: bool = False
    """Whether it was seen to have the n-gram processor."""
    cache_tokens: int = 0
    version: str = ""
    notes: tuple[str, ...] = ()
    """What is not as it should be."""

    @property
    def pages(self) -> int:
        """What it reads at once by our own choice."""
        if not self.cache_tokens:
            return PAGES
        return max(1, min(MOST_PAGES, self.cache_tokens // _FULL))

    def learn(self, report: Report) -> None:
        """Take over what was found out."""
        self.notes = tuple(report.notes())
        if report.error is None:
            self.model, self.context, self.version = report.model, report.context, report.version
            self.guard = report.guard is True
            self.cache_tokens = report.cache_tokens


class RemoteEngine(Engine):
    """One or several servers; see :mod:`desktop.engines.remote.pool` for who gets a page."""

    name = "remote"

    def __init__(self) -> None:
        self._nodes: list[Node] = []
        self._pool: Optional[Pool[Node]] = None
        self._wanted = ""
        self._workers: Optional[ThreadPoolExecutor] = None
        self._told: Optional[EngineReady] = None
        """What was said of the servers at last."""
        self._asked = 0
        """Pages at once that were asked for; 0: as many as the servers choose together."""

    async def start(self, settings: dict[str, Any], progress: Progress) -> EngineReady:
        """Ask every server what it is and try it with a page.

        Raises NoServers, BadAddress, BadKey; the error of the server where there is but one or
        all have the same kind; else ServersGone (another start may help).
        """
        found = addresses.parse(str(settings.get("servers") or ""))
        self._wanted = str(settings.get("remote_model") or "").strip()
        self._workers = ThreadPoolExecutor(
            max_workers=max(1, min(8, os.cpu_count() or 1)), thread_name_prefix="upload")
        progress(_("Asking the servers"), 0.0)
        loop = asyncio.get_running_loop()
        context = await loop.run_in_executor(self._workers, trust)
        for address in found:
            key = await loop.run_in_executor(self._workers, keys.lookup, address)
            self._nodes.append(Node(Connection(address, key, context)))
        reports = await self._examine_all(progress)
        members = [Member(node, node.connection.name, node.pages) for node in self._nodes]
        self._pool = Pool(members, self._look, self._grew)
        self._spread()
        for member, report in zip(members, reports, strict=True):
            if report.error is not None:
                self._pool.rest(member, report.error)
        if all(report.error is not None for report in reports):
            raise _none(reports)
        self._told = self._got()
        return self._told

    async def read(self, page: SubmitPage) -> AsyncIterator[Output]:
        """Have the page read, as often as needed, by one server after another."""
        assert self._pool is not None
        prompt = prompts.chat(page.settings)
        ready = await asyncio.get_running_loop().run_in_executor(
            self._workers, upload.prepare, page)
        turn, tries, breaks, begun = self._pool.turn(), 1, 0.0, False
        avoid = self._without_guard(page)
        while True:
            taking = asyncio.ensure_future(self._pool.take(page.priority, turn, avoid))
            try:
                while not (await asyncio.wait({taking}, timeout=_BEAT))[0]:
                    yield Regions(())  # It waits for a place and is not forgotten.
                lease = taking.result()
            except BaseException:
                # Stopped while it waited, perhaps just as it got a place.
                if taking.done() and not taking.cancelled() and taking.exception() is None:
                    self._pool.release(taking.result())
                taking.cancel()
                raise
            try:
                async with aclosing(self._attempt(lease, page, ready, prompt)) as attempt:
                    async for output in attempt:
                        begun = begun or isinstance(output, Text)
                        yield output
                return
            except (Passing, ServerError) as error:
                # Silence may be the server's queue, so it counts half.
                breaks += 1.0 if isinstance(error, Broken) else isinstance(error, Silent) / 2
                if breaks >= TRIES:
                    raise PageGivenUp(tries=tries, reason=str(error)) from None
                tries += 1
            avoid = avoid | {lease.member.name}
            if begun:
                begun = False
                yield Restarted("server")

    @property
    def budget(self) -> int:  # type: ignore[override]
        """In pages (the servers ration their memory themselves): as many as they take now, and as
        many again that are ready to follow, so that no server waits for an image."""
        if self._pool is None:
            return 0
        members = self._pool.usable() or self._pool.members
        return min(2 * sum(member.limit for member in members),
                   sum(member.most for member in self._pool.members))

    def cost(self, page: SubmitPage) -> int:
        """Every page is one."""
        return 1

    def parts(self, page: SubmitPage) -> tuple[tuple[int, int, int, int], ...]:
        """Slices of a very long page."""
        return fitting.parts(page)

    def second_try(self, page: SubmitPage) -> SubmitPage | None:
        """With the n-gram processor, where a server has it."""
        if not any(node.guard for node in self._nodes):
            return None
        return sampling.second_try(page)

    def set_concurrency(self, pages: int) -> None:
        """Spread PAGES over the servers by their size. As many as all servers would choose
        together is taken as no choice: each then gets what it begins promptly."""
        told = self._told.capacity if self._told is not None else 0
        self._asked = 0 if pages == told else pages
        self._spread()

    async def close(self) -> None:
        """Close every connection."""
        if self._pool is not None:
            await self._pool.close()
        for node in self._nodes:
            await node.connection.close()
        if self._workers is not None:
            self._workers.shutdown(wait=False, cancel_futures=True)

    # --- inside

    def _spread(self) -> None:
        """Give every server its share of the pages."""
        if self._pool is None:
            return
        whole = sum(node.pages for node in self._nodes)
        for member in self._pool.members:
            own = member.server.pages
            share = max(1, -(-self._asked * own // whole)) if self._asked else own
            member.allow(share, steered=not self._asked)

    def _got(self) -> EngineReady:
        """What the servers are together, as far as is known."""
        known = [node for node in self._nodes if node.model]
        return EngineReady(
            engine=self.name, model=", ".join(dict.fromkeys(node.model for node in known)),
            device=", ".join(node.connection.name for node in known),
            capacity=sum(node.pages for node in self._nodes),
            cache_tokens=sum(node.cache_tokens for node in known),
            context=min((node.context for node in known if node.context), default=0),
            versions={f"vllm {node.connection.name}": node.version
                      for node in known if node.version},
            notes=tuple(line for node in self._nodes for line in node.notes))

    async def _examine_all(self, progress: Progress) -> list[Report]:
        done = 0

        async def one(node: Node) -> Report:
            nonlocal done
            report = await examine(node.connection, self._wanted)
            node.learn(report)
            done += 1
            progress(_("Asking the servers"), done / len(self._nodes))
            return report

        return list(await asyncio.gather(*(one(node) for node in self._nodes)))

    def _grew(self) -> None:
        if self.grown is not None:  # Later: the pool is in the midst of something.
            asyncio.get_running_loop().call_soon(self.grown)

    async def _look(self, node: Node) -> None:
        """Whether NODE is well enough for a page; raises Passing, VersoError."""
        if node.model:
            await self._look_again(node)
        else:
            report = await examine(node.connection, self._wanted)
            if report.error is not None:
                raise report.error
            node.learn(report)
        self._spread()
        got = self._got()
        if got != self._told:
            self._told = got
            if self.changed is not None:
                self.changed(got)

    async def _look_again(self, node: Node) -> None:
        """At NODE, which was well before. It may have been started anew in the meantime, in
        another way; what it does not tell now is taken to be as it was."""
        found = choose(await node.connection.models(), self._wanted, node.connection.name)
        version, metrics, guard = await asyncio.gather(
            node.connection.version(), node.connection.metrics(),
            has_guard(node.connection, found.name))
        node.model, node.context = found.name, found.context or node.context
        node.version = version or node.version
        node.cache_tokens = cache_tokens(metrics) or node.cache_tokens
        node.guard = node.guard if guard is None else guard

    def _without_guard(self, page: SubmitPage) -> frozenset[str]:
        """Servers that cannot do what PAGE wants, where others can."""
        if sampling.ngram(page.settings) is None:
            return frozenset()
        return frozenset(node.connection.name for node in self._nodes if not node.guard)

    async def _attempt(self, lease: Lease[Node], page: SubmitPage, ready: upload.Upload,
                       prompt: str) -> AsyncGenerator[Output, None]:
        """Read PAGE at the server of LEASE, and give that back whatever happens."""
        assert self._pool is not None
        node, spoken = lease.server, False
        trouble: Optional[Exception] = None
        try:
            known = node.context
            try:
                async with aclosing(self._answer(lease, page, ready, prompt)) as answer:
                    async for output in answer:
                        yield output
            except ContextTooSmall as error:
                # The server has now told the context that it did not list.
                told = int(error.values["context"])
                if told == known or told <= 0:
                    raise
                node.context = told
                async with aclosing(self._answer(lease, page, ready, prompt)) as answer:
                    async for output in answer:
                        yield output
            spoken = True
        except (Passing, ServerError) as error:
            trouble, spoken = error, True
            raise
        except VersoError:
            spoken = True  # About the page: the server is well.
            raise
        finally:
            if spoken:
                self._pool.done(lease, trouble)
            else:
                self._pool.release(lease)

    async def _answer(self, lease: Lease[Node], page: SubmitPage, ready: upload.Upload,
                      prompt: str) -> AsyncGenerator[Output, None]:
        assert self._pool is not None
        node = lease.server
        before = request.prompt_tokens(ready.tokens, page.settings, prompt)
        limit = sampling.limit(page.settings, node.context, before)
        if limit.tokens <= 0:
            raise ContextTooSmall(server=node.connection.name, context=node.context)
        body = request.body(node.model, prompt, ready.url, limit.tokens, page.settings,
                            guard=node.guard)
        silence = float(page.settings.get("server_silence") or 120)
        ending, finish, counted, pieces, sent = outcome.Ending(), None, 0, 0, 0
        asked = time.monotonic()
        async with aclosing(node.connection.chat(body, node.model, silence)) as stream:
            async for chunk in stream:
                finish = chunk.finish or finish
                sent = chunk.prompt_tokens or sent
                tokens = max(0, chunk.output_tokens - counted)
                if chunk.text:
                    if not pieces:
                        self._pool.begun(lease, time.monotonic() - asked)
                    pieces += 1
                    tokens = tokens or (0 if chunk.output_tokens else 1)
                counted += tokens
                text = ending.feed(chunk.text)
                if text or tokens:
                    yield Text(text, tokens)
                if pieces > limit.tokens + _SLACK:
                    finish = "length"  # It ignores the limit, and would never end.
                    break
        rest = ending.finish()
        if rest:
            yield Text(rest)
        reason = "complete" if ending.seen else outcome.outcome(finish)
        if reason is None:
            raise Broken(_("{server} ended the answer without a reason").format(
                server=node.connection.name))
        yield Finish(reason, sent, counted, limit.tokens)


def _none(reports: list[Report]) -> VersoError:
    """Why no server can be used: what only a person can change where that is all there is."""
    lasting = [report.error for report in reports if isinstance(report.error, VersoError)]
    if len(lasting) == len(reports) and len({type(error) for error in lasting}) == 1:
        return lasting[0]
    return ServersGone(reason=" · ".join(
        problem_of(report.error, report.name).message
        for report in reports if report.error is not None))
