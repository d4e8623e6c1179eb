"""Who gets the next page."""

from __future__ import annotations

import asyncio

import pytest

from desktop.engines.remote import pool
from desktop.engines.remote.errors import Broken, Busy, KeyRefused, ServersGone, Silent
from desktop.engines.remote.pool import Member, Pool, State
from tests.engines.remote.driving import run, until

pytestmark = pytest.mark.usefixtures("short_rests")


class Looks:
    """Answers a look at a server."""

    def __init__(self) -> None:
        self.ill: set[str] = set()
        self.seen: list[str] = []

    async def __call__(self, server: str) -> None:
        self.seen.append(server)
        if server in self.ill:
            raise Broken("still ill")


def make(*limits: int) -> tuple[Pool[str], list[Member[str]], Looks]:
    looks = Looks()
    members = [Member(name, name, limit) for name, limit in zip("abc", limits, strict=False)]
    return Pool(members, looks), members, looks


def test_the_least_loaded_for_its_size() -> None:
    async def main() -> None:
        servers, (a, b), _ = make(2, 6)
        taken = [await servers.take(1, servers.turn()) for _ in range(8)]
        assert (a.load, b.load) == (2, 6)
        assert sum(lease.server == "a" for lease in taken[:4]) == 1
        late = asyncio.create_task(servers.take(1, servers.turn()))
        await asyncio.sleep(0)
        assert not late.done()
        servers.done(next(lease for lease in taken if lease.server == "b"))
        assert (await late).server == "b"
        await servers.close()

    run(main())


def test_equals_take_turns() -> None:
    async def main() -> None:
        servers, _, _ = make(4, 4)
        names = []
        for _ in range(4):
            lease = await servers.take(1, servers.turn())
            names.append(lease.server)
            servers.done(lease)
        assert names in (["a", "b"] * 2, ["b", "a"] * 2)

    run(main())


def test_rests_grow_and_a_server_is_looked_at_then_tried_with_one_page() -> None:
    async def main() -> None:
        servers, (a,), looks = make(3)
        looks.ill = {"a"}
        leases = [await servers.take(1, servers.turn()) for _ in range(3)]
        for lease in leases:
            servers.done(lease, Broken("cut"))
        assert a.failures == 1, "one failure, however many pages it took with it"
        waiting = [asyncio.create_task(servers.take(1, servers.turn())) for _ in range(2)]
        await until(lambda: a.failures >= 4)
        assert looks.seen == ["a"] * (a.failures - 1)
        assert not any(task.done() for task in waiting)
        looks.ill.clear()
        await until(lambda: waiting[0].done())
        assert a.state is State.TRIAL
        assert not waiting[1].done()
        servers.done(waiting[0].result())
        assert a.state is State.UP
        assert a.failures == 0
        await waiting[1]
        await servers.close()

    run(main())


def test_a_trial_that_fails_is_a_longer_rest() -> None:
    async def main() -> None:
        servers, (a,), looks = make(3)
        servers.done(await servers.take(1, 1), Broken("cut"))
        lease = await servers.take(1, 2)
        servers.done(lease, Broken("cut again"))
        assert a.failures == 2
        assert a.state is State.RESTING
        assert len(looks.seen) == 1
        await servers.close()

    run(main())


def test_a_look_that_nobody_foresaw_to_fail_is_a_longer_rest() -> None:
    failed: list[str] = []

    async def look(server: str) -> None:
        if not failed:
            failed.append(server)
            raise RuntimeError("with a secret in it")

    async def main() -> None:
        told: list[str] = []
        a = Member("a", "a", 3)
        servers = Pool([a], look, lambda: told.append(a.state.value))
        servers.done(await servers.take(1, 1), Broken("cut"))
        await until(lambda: bool(failed))
        assert (a.failures, a.problem) == (2, "RuntimeError")
        servers.done(await servers.take(1, 2))
        assert a.state is State.UP
        assert told == ["trial"], "there is room again"
        await servers.close()

    run(main())


def test_a_busy_server_gets_less_and_is_not_looked_at() -> None:
    async def main() -> None:
        servers, (a,), looks = make(8)
        leases = [await servers.take(1, servers.turn()) for _ in range(6)]
        servers.done(leases.pop(), Busy("busy", 0.05))
        assert a.limit == 5
        servers.done(leases.pop())
        again = await servers.take(1, 0)
        assert a.state is State.UP
        assert looks.seen == []
        servers.done(again)
        assert a.limit == 6
        await servers.close()

    run(main())


def test_avoided_only_while_there_is_another() -> None:
    async def main() -> None:
        servers, (_, b), _ = make(1, 1)
        only_b = await servers.take(1, 1, frozenset("a"))
        assert only_b.server == "b"
        assert (await servers.take(1, 2, frozenset("a"))).server == "a"
        assert b.load == 1
        await servers.close()

    run(main())


def test_all_out_is_said_at_once() -> None:
    async def main() -> None:
        servers, members, _ = make(1, 1)
        for member in members:
            servers.rest(member, KeyRefused(server=member.name, address=member.name))
        assert {member.state for member in members} == {State.OUT}
        with pytest.raises(ServersGone, match=r"a: .*refuses the key.*b: ") as caught:
            await servers.take(1, 1)
        assert "refuses the key" in str(caught.value)
        await servers.close()

    run(main())


def test_one_that_is_out_comes_back_when_the_look_is_good(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "LONGEST_REST", 0.05)

    async def main() -> None:
        servers, (a, _), _ = make(1, 1)
        servers.rest(a, KeyRefused(server="a", address="a"))
        await until(lambda: a.state is State.TRIAL)
        await servers.close()

    run(main())


def test_who_waits_is_told_when_nothing_is_to_be_expected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "OUTAGE", 0.2)

    async def main() -> None:
        servers, (a,), looks = make(1)
        looks.ill = {"a"}
        servers.done(await servers.take(1, 1), Broken("cut"))
        with pytest.raises(ServersGone, match=r"still ill|cut"):
            await servers.take(1, 2)
        assert a.load == 0
        await servers.close()

    run(main())


def test_a_place_given_to_one_who_has_gone_is_given_on() -> None:
    async def main() -> None:
        servers, (a,), _ = make(1)
        first = await servers.take(1, 1)
        gone = asyncio.create_task(servers.take(1, 2))
        stays = asyncio.create_task(servers.take(1, 3))
        await asyncio.sleep(0)
        servers.done(first)  # Its place is given to the second in this moment …
        gone.cancel()        # … which does not want it any more.
        await asyncio.gather(gone, return_exceptions=True)
        assert (await stays).server == "a"
        assert a.load == 1
        await servers.close()

    run(main())


def test_a_steered_server_begins_with_few_and_follows_how_promptly_it_begins() -> None:
    async def main() -> None:
        servers, (a,), _ = make(100)
        a.allow(100, steered=True)
        assert a.limit == pool.FEW
        leases = [await servers.take(1, servers.turn()) for _ in range(pool.FEW)]
        late = asyncio.create_task(servers.take(1, servers.turn()))
        await asyncio.sleep(0)
        assert not late.done()
        servers.begun(leases[0], 0.2)
        await late
        assert a.limit == pool.FEW + 1
        servers.begun(leases[1], (pool.PROMPT + pool.LATE) / 2)
        assert a.limit == pool.FEW + 1
        servers.begun(leases[2], pool.LATE)
        servers.begun(leases[3], 100.0)
        assert a.limit == pool.FEW - 1
        for lease in leases:
            servers.done(lease)
        assert a.limit == pool.FEW - 1, "only beginning promptly counts"
        for _ in range(200):
            servers.begun(late.result(), 1.0)
        assert a.limit == 100
        a.allow(100, steered=True)
        assert a.limit == 100, "what was learnt stays"
        a.allow(7, steered=False)
        assert a.limit == 7
        servers.begun(late.result(), 100.0)
        assert a.limit == 7, "a person chose it"
        await servers.close()

    run(main())


def test_silence_halves_what_a_server_gets() -> None:
    async def main() -> None:
        servers, (a,), looks = make(8)
        leases = [await servers.take(1, servers.turn()) for _ in range(8)]
        for lease in leases:
            servers.done(lease, Silent("nothing"))
        assert a.limit == 3
        await servers.take(1, 1)
        assert looks.seen == ["a"]
        await servers.close()

    run(main())
