"""Real vLLM: an environment of its own, a tiny model, engines that serve many tests.

Loading takes a minute, so an engine lives for a whole module; what kills it comes last there.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.accelerator import real

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.engines)
            item.add_marker(pytest.mark.slow)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if real.figures:
        terminalreporter.section("measured with real vLLM")
        for line in real.figures:
            terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def real_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Verso's folders while something is made that outlives a test."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        for kind in ("data", "config", "cache", "log"):
            patch.setenv(f"VERSO_{kind.upper()}_DIR", str(home / kind))
        yield home
