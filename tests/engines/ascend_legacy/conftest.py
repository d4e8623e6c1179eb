"""An engine ``ascend-legacy`` in a real worker, over what stands for vLLM 0.8.5."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from desktop.settings import Values
from tests.accelerator.real import Reader
from tests.support import ascend_sources, environments, legacy_vllm

NAME = "ascend-legacy"


@pytest.fixture(scope="session")
def real_sources() -> None:
    """The sources of vllm-ascend and vLLM are there; for tests with the marker ``engines``."""
    try:
        ascend_sources.ensure()
    except SystemExit as error:
        pytest.fail(f"packaging/ascend_sources.py: {error}")


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that looks like a whole model."""
    return environments.model(tmp_path_factory.mktemp("model") / "ocr-2")


@pytest.fixture(scope="session")
def code(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Code laid out as the official one; it imports ``flash_attn``, as that does."""
    return legacy_vllm.official_tree(tmp_path_factory.mktemp("code") / "DeepSeek-OCR2-vllm")


@pytest.fixture
def worker(tmp_path: Path, model: Path, code: Path, no_process_left: object,
           ) -> Iterator[Callable[..., Reader]]:
    """``worker(recital, npu=…, interpreter=…, **settings)`` begins to load the engine."""
    readers: list[Reader] = []

    def begin(recital: legacy_vllm.Recital, *before: Path, npu: bool = True,
              interpreter: Path | None = None, engine_args: dict[str, str] | None = None,
              **settings: Any) -> Reader:
        values = Values({"engine": NAME, "model": str(model), "official_code": str(code),
                         "max_model_len": 4096, **settings})
        reader = Reader(NAME, tmp_path, values, interpreter=interpreter,
                        environment=recital.environment(*before, npu=npu),
                        engine_args=engine_args)
        readers.append(reader)
        reader.start()
        return reader

    yield begin
    for reader in readers:
        reader.close()
