"""What servers do with a key: refuse it in the midst of the work, and give it back in answers."""

from __future__ import annotations

import pytest

from desktop.engines.remote import errors, keys, pool
from desktop.errors import VersoError
from tests.engines.remote.driving import MakePage, Serve, outputs, run, started
from tests.engines.remote.fake_server import Refuse

pytestmark = pytest.mark.usefixtures("short_rests")

SECRET = "sk-verso-0123456789abcdef"


def test_a_key_that_is_taken_away_stops_the_engine_not_the_page(
        serve: Serve, a_page: MakePage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(keys.VARIABLE, SECRET)
    server, page = serve(key=SECRET), a_page()

    async def main() -> None:
        async with started(server) as (engine, _):
            server.key = "another"
            with pytest.raises(errors.ServersGone) as caught:
                await outputs(engine, page)
            assert SECRET not in str(caught.value)

    run(main())


ECHOES = (
    "{authorization} is wrong", '{"error": {"message": "Bad header: {authorization}"}}',
    "<html><title>{authorization}</title>", "x" * 290 + "{authorization}")


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 429, 500, 503])
def test_a_key_that_a_server_gives_back_goes_nowhere(
        status: int, serve: Serve, a_page: MakePage,
        all_logged: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    server, page = serve(key=SECRET), a_page()
    monkeypatch.setattr(pool, "OUTAGE", 0.1)
    keys.store(server.url, SECRET)
    seen: list[str] = []

    async def main() -> None:
        async with started(server) as (engine, _):
            for echo in ECHOES:
                server.always = server.listing = Refuse(status, echo)
                with pytest.raises(VersoError) as caught:
                    await outputs(engine, page)
                seen.append(repr(caught.value.problem()))
                seen.append(repr(caught.value) + repr(caught.value.__cause__))
        for echo in ECHOES:
            server.listing = Refuse(status, echo)
            with pytest.raises(VersoError) as caught:
                async with started(server):
                    pass
            seen.append(repr(caught.value.problem()))

    run(main())
    everything = " ".join(seen) + all_logged.text
    assert "[key]" in everything, "the servers' words are shown, without it"
    for length in range(12, len(SECRET) + 1):
        assert SECRET[:length] not in everything
