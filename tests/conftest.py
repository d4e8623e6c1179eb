"""Fixtures every test can use; each test gets folders of its own and must log no error.

``pytest -p no:pytest-qt --without-qt`` runs the tests of everything but the window, with Qt
blocked from import in the test process and in every process it starts.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CompletedProcess

import hypothesis
import psutil
import pytest

from tests.support import data, processes, tiny_vllm

# How long an example takes depends on the machine, and a run of all tests on its examples: the same
# each time.
hypothesis.settings.register_profile(
    "verso", deadline=None, derandomize=True,
    suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("verso")
QT_FOLDERS = ("ui", "e2e")
"""Folders under tests/ that need Qt."""


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    parser.addoption("--without-qt", action="store_true",
                     help="block Qt from import and leave out the tests that need it")
    parser.addoption("--engines", action="store_true",
                     help="run the tests with real vLLM too (packaging/test --engines sets it up)")
    if not pluginmanager.hasplugin("pytest-qt"):
        # pyproject.toml sets pytest-qt's options; --strict-config would refuse them without it.
        parser.addini("qt_api", "unused without pytest-qt")
        parser.addini("qt_log_level_fail", "unused without pytest-qt")
        parser.addini("qt_log_ignore", "unused without pytest-qt", type="linelist")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "logs_errors: the test provokes ERROR log records on purpose")
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # A shell starts what runs in the background so, and children would inherit it.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if config.getoption("--without-qt"):
        os.environ.update(processes.without_qt())
        sys.path.insert(0, str(processes.NO_QT))
    elif not os.environ.get("DISPLAY") and not os.environ.get("WAYLAND_DISPLAY"):
        os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        # Chromium refuses to start its sandbox as root (containers).
        os.environ.setdefault("QTWEBENGINE_CHROMIUM_FLAGS", "--no-sandbox")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    if config.getoption("--without-qt") and collection_path.name in QT_FOLDERS:
        return collection_path.parent == data.ROOT / "tests" or None
    return None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--engines") or "engines" in config.getoption("markexpr"):
        return
    left_out = pytest.mark.skip(reason="needs real vLLM: run ./packaging/test --engines")
    for item in items:
        if item.get_closest_marker("engines") is not None:
            item.add_marker(left_out)


@pytest.fixture(autouse=True)
def test_mark(monkeypatch: pytest.MonkeyPatch) -> str:
    """A value of this test's own, inherited by every process it starts."""
    mark = uuid.uuid4().hex
    monkeypatch.setenv(processes.MARK, mark)
    return mark


@pytest.fixture(autouse=True)
def verso_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of this test's own that holds Verso's ``data``, ``config``, ``cache``, ``log``."""
    home = tmp_path / "verso-home"
    for kind in ("data", "config", "cache", "log"):
        monkeypatch.setenv(f"VERSO_{kind.upper()}_DIR", str(home / kind))
    return home


class _Collector(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        self.lines.append(f"{record.name} (thread {record.threadName}): {record.getMessage()}"
                          + (f": {error!r}" if error else ""))


@pytest.fixture(autouse=True)
def no_error_logged(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test in whose course an ERROR is logged, unless it is marked ``logs_errors``."""
    collector = _Collector()
    logging.getLogger().addHandler(collector)
    yield
    logging.getLogger().removeHandler(collector)
    if collector.lines and request.node.get_closest_marker("logs_errors") is None:
        pytest.fail("logged as errors:\n" + "\n".join(collector.lines), pytrace=False)


@pytest.fixture
def no_process_left(test_mark: str) -> Iterator[Callable[[], list[str]]]:
    """Fail a test that leaves a process running (it is given some seconds to end by itself).

    The value is a function that gives the command lines of those that run now.
    """
    yield lambda: processes.left_running(test_mark, 0)
    left = processes.left_running(test_mark)
    for process in processes.descendants(test_mark):
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    assert not left, "still running:\n" + "\n".join(left)


@pytest.fixture
def socket_folder() -> Iterator[Path]:
    """A folder for a socket, whose name may have 107 bytes; ``tmp_path`` may be longer."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield Path(folder)


@pytest.fixture
def no_qt() -> Callable[..., CompletedProcess[str]]:
    """``no_qt(code, *args)`` runs Python code in a new process that cannot import Qt."""
    return processes.run_without_qt


@pytest.fixture(scope="session")
def samples() -> Path:
    """The folder of the project's own small documents."""
    return data.SAMPLES


@pytest.fixture(scope="session")
def sample_pdf() -> Path:
    """The document behind “try the sample”."""
    return data.ROOT / "resources" / "samples" / "sample.pdf"


@pytest.fixture(scope="session")
def corpus() -> Path:
    """The corpus of real documents (``files/``, ``gt/``, ``manifest.tsv``); skips without it."""
    folder = data.corpus_dir()
    if folder is None:
        pytest.skip(f"no document corpus in {data.shared()} (set VERSO_CORPUS)")
    return folder


@pytest.fixture(scope="session")
def recordings() -> Path:
    """Recorded model outputs (``manifest.tsv``); skips without them."""
    folder = data.recordings_dir()
    if folder is None:
        pytest.skip(f"no recordings in {data.shared()} (set VERSO_CORPUS)")
    return folder


@pytest.fixture(scope="session")
def engine_python(request: pytest.FixtureRequest) -> Path:
    """The Python that has real vLLM; for tests with the marker ``engines``."""
    python = tiny_vllm.interpreter()
    if python is None:
        missing = "no environment with real vLLM: run ./packaging/test --engines"
        if request.config.getoption("--engines"):
            pytest.fail(missing)
        pytest.skip(missing)
    return python


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a DeepSeek-OCR-2 that is tiny and writes noise, or what it is told to."""
    return tiny_vllm.build(tmp_path_factory.mktemp("models") / "tiny-ocr-2")
