"""What the engine says when it is ready, and why it is not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from desktop.engines.base import EngineDied
from desktop.engines.remote import engine as engines
from desktop.engines.remote import errors
from desktop.errors import VersoError
from tests.engines.remote.driving import run, started
from tests.engines.remote.fake_server import FakeServer, Raw, Refuse

pytestmark = pytest.mark.usefixtures("short_rests")


def test_what_is_ready(steady: FakeServer) -> None:
    steady.metrics = 'vllm:cache_config_info{block_size="16",num_gpu_blocks="20000"} 1.0\n'

    async def main() -> None:
        async with started(steady) as (_, ready):
            assert ready.engine == "remote"
            assert ready.model == "DeepSeek-OCR-2"
            assert ready.context == 8192
            assert ready.capacity == engines.MOST_PAGES
            assert ready.versions == {f"vllm {steady.name}": "0.32.0"}
            assert ready.notes == ()

    run(main())


@pytest.mark.parametrize(("spoil", "error", "fatal"), [
    (lambda s: s.stop(), errors.ServersGone, False),
    (lambda s: setattr(s, "key", "x" * 20), errors.KeyWanted, True),
    (lambda s: setattr(s, "models", []), errors.NotOpenAI, True),
    (lambda s: setattr(s, "listing", Raw(b"<html>hello</html>", "text/html")),
     errors.NotOpenAI, True),
    (lambda s: setattr(s, "listing", Refuse(302, headers={"Location": "http://login/"})),
     errors.NotOpenAI, True),
    (lambda s: setattr(s, "listing", Refuse(503)), errors.ServersGone, False),
    (lambda s: setattr(s, "always", Refuse(400, "not a multimodal model")),
     errors.PageRefused, True),
])
def test_no_server_no_engine(spoil: Callable[[FakeServer], None], error: type[VersoError],
                             fatal: bool, server: FakeServer) -> None:
    address = server.name
    spoil(server)

    async def main() -> None:
        with pytest.raises(error) as caught:
            async with started(server):
                pass
        assert isinstance(caught.value, EngineDied) is not fatal
        assert address in str(caught.value)

    run(main())


def test_a_model_that_is_not_there(server: FakeServer) -> None:
    async def main() -> None:
        with pytest.raises(errors.NoSuchModel, match="DeepSeek-OCR-2"):
            async with started(server, remote_model="other"):
                pass

    run(main())
