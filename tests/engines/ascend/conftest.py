"""What the tests of the Ascend engines share."""

from __future__ import annotations

import pytest

from tests.support import ascend_sources


@pytest.fixture(scope="session")
def real_sources() -> None:
    """The sources of vllm-ascend and vLLM are there; for tests with the marker ``engines``."""
    try:
        ascend_sources.ensure()
    except SystemExit as error:
        pytest.fail(f"packaging/ascend_sources.py: {error}")
