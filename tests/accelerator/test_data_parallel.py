"""vLLM's own data parallel serving: two copies of the model behind one address."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from desktop.settings import Values
from tests.accelerator import real, servers
from tests.accelerator.real import Reader
from tests.accelerator.servers import Server
from tests.support import tiny_vllm

TEXT = "<|ref|>text<|/ref|><|det|>[[80, 180, 900, 260]]<|/det|>\nRead by one of two copies.\n"


@pytest.fixture
def server(engine_python: Path, tmp_path: Path) -> Iterator[Server]:
    # On a processor vLLM cannot pass tokens between copies of a mixture of experts.
    model = tiny_vllm.build(tmp_path / "dense", dense=True)
    script = real.Script(tmp_path)
    script.write(TEXT)
    begin = time.monotonic()
    server = servers.vllm("parallel", engine_python, model, tmp_path, script,
                          "--data-parallel-size", "2")
    try:
        server.wait()
        real.figures.append(f"server with two copies ready after {time.monotonic() - begin:.0f} s")
        yield server
    finally:
        server.stop()


def test_two_copies_behind_one_address(server: Server, tmp_path: Path) -> None:
    cores = real.tops([process for process in server.processes()
                       if "EngineCore" in real.words(process)])
    assert len(cores) == 2, server.processes()
    reader = Reader("remote", tmp_path, Values({"engine": "remote", "servers": server.url}))
    try:
        reader.start()
        ready = reader.ready()
        # Both caches count: twice what one copy holds.
        assert ready.cache_tokens % 2 == 0
        pages = [reader.submit() for _number in range(6)]
        for page in pages:
            assert reader.finished(page).finish == "complete"
            assert reader.text(page) == TEXT
    finally:
        reader.close()
