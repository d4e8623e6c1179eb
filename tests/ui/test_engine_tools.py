"""What can be done about engines from the window: on real interpreters, servers and downloads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import keyring
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QLabel, QWidget
from pytestqt.qtbot import QtBot

from desktop import keyrings
from desktop.engines.remote import keys
from desktop.engines.vllm.devices import Device, User
from desktop.engines.vllm.failures import OutOfMemory
from desktop.engines.vllm.preflight import Need, memory
from desktop.errors import Problem
from desktop.jobs.events import EngineState, EngineView, ProblemView
from desktop.models.places import download_folder
from desktop.protocol.messages import EngineReady
from desktop.settings import Values
from desktop.ui import findings
from desktop.ui.dialogs.model import ModelDialog
from desktop.ui.dialogs.report import ReportDialog
from desktop.ui.dialogs.server_key import ServerKeyDialog
from desktop.ui.main_window import MainWindow
from desktop.ui.panels.problems import ProblemsModel, ProblemsPanel
from desktop.ui.remedies import remedy
from desktop.ui.tokens import LIGHT
from tests.models.conftest import MemoryKeyring
from tests.models.hub import Hub, serving
from tests.support import environments, processes, programs
from tests.ui.conftest import WAIT
from tests.ui.stage import VLLM

GB = 1 << 30


@pytest.fixture
def tools(window: MainWindow) -> Iterator[MainWindow]:
    """The window; settings are put back and dialogs closed afterwards."""
    before = window.session.values
    yield window
    for dialog in list(window.commands._dialogs.values()):
        dialog.close()
    for key, value in before.as_dict().items():
        window.commands.change_setting(key, value)
    window.commands.tools.download.close()


def dialog(window: MainWindow, kind: type[QWidget]) -> QWidget:
    found = [each for each in window.commands._dialogs.values() if isinstance(each, kind)]
    assert len(found) == 1
    return found[0]


def shown(widget: QWidget) -> str:
    return "\n".join(label.text() for label in widget.findChildren(QLabel))


# --- remedies


def vllm_problem(share: float, free: float, total: float, weights: float) -> Problem:
    """The engine's own words about memory, made by its own check."""
    values = {"memory_utilization": share, "max_model_len": 8192, "quantization": "none"}
    gpu = Device(0, "GPU-x", "NVIDIA L4", round(total * GB), round(free * GB),
                 (User(17, "trainer", 5 * GB),))
    with pytest.raises(OutOfMemory) as caught:
        memory(values, Need(round(weights * GB), GB), [gpu])
    return caught.value.problem()


@pytest.mark.parametrize(("problem", "expected"), [
    (lambda: vllm_problem(0.85, 17.0, 24.0, 6.8), {"memory_utilization": 0.69}),
    (lambda: vllm_problem(0.3, 24.0, 24.0, 6.8), {"memory_utilization": 0.45}),
])
def test_the_figure_that_fits_is_set_by_a_button(
        problem: Callable[[], Problem], expected: dict[str, float]) -> None:
    found = remedy(problem())
    assert found is not None
    assert found.action == "set"
    assert found.values == pytest.approx(expected, abs=0.011)
    assert found.text.startswith("Use 0.")


@pytest.mark.parametrize("fix", [
    (), (("memory_utilization", 7.5),), (("of_a_later_version", 1),),
    (("memory_utilization", 0.5), ("quantization", "int3"))])
def test_a_button_sets_only_what_can_be_set(fix: tuple[tuple[str, object], ...]) -> None:
    hint = "Set “Memory utilization” to 0.62."
    assert remedy(Problem("x.memory", "Too small.", hint, fix=fix)) is None


@pytest.mark.parametrize(("code", "action", "key"), [
    ("model.missing", "get_model", ""), ("vllm.model", "get_model", ""),
    ("engine.not_installed", "show", "engine_interpreter"),
    ("interpreter.lacks", "check", ""), ("vllm.version", "check", ""),
    ("remote.no_servers", "show", "servers"), ("remote.key_wanted", "key", ""),
    ("vllm.memory", "show", "memory_utilization"),
    ("vllm.memory_ran_out", "show", "batched_tokens"), ("remote.unreachable", "probe", ""),
    ("page.length", "show", "max_tokens"),
])
def test_what_can_be_done_about_a_problem(code: str, action: str, key: str) -> None:
    found = remedy(Problem(code, "It does not work.", "Do this."))
    assert found is not None
    assert (found.action, found.key) == (action, key)
    assert remedy(Problem("intake.unreadable", "It is damaged.", "Copy it again.")) is None


def test_the_button_in_the_list_of_problems(qtbot: QtBot) -> None:
    model = ProblemsModel()
    panel = ProblemsPanel(model, LIGHT)
    qtbot.addWidget(panel)
    panel.resize(500, 300)
    panel.show()
    model.put(ProblemView("a", Problem("intake.unreadable", "Damaged.", "Copy it again.")))
    model.put(ProblemView("b", Problem("model.missing", "No model.", "Get it.")))
    wanted: list[object] = []
    panel.remedy_wanted.connect(wanted.append)
    plain, offering = (panel.visualRect(model.index(row)) for row in (0, 1))
    assert offering.height() > plain.height()
    area = panel._delegate.button_area(offering, model.problems[1])
    assert offering.contains(area)
    qtbot.mouseMove(panel.viewport(), area.center())
    qtbot.mouseClick(panel.viewport(), Qt.MouseButton.LeftButton, pos=plain.center())
    qtbot.mouseClick(panel.viewport(), Qt.MouseButton.LeftButton,
                     pos=QPoint(area.right() + 30, area.center().y()))
    assert wanted == []
    qtbot.mouseClick(panel.viewport(), Qt.MouseButton.LeftButton, pos=area.center())
    assert [each.action for each in wanted] == ["get_model"]  # type: ignore[attr-defined]


def test_a_failed_start_is_mended_from_the_window(tools: MainWindow, qtbot: QtBot) -> None:
    tools.commands.tools.remedy(remedy(vllm_problem(0.85, 17.0, 24.0, 6.8)))  # type: ignore[arg-type]
    assert tools.session.values["memory_utilization"] == pytest.approx(0.69, abs=0.011)


# --- what the engine got


def test_everything_the_engine_got_is_shown(tools: MainWindow, qtbot: QtBot) -> None:
    tools.engine = EngineView("vllm", EngineState.READY, ready=VLLM)
    tools.commands.tools.details()
    text = dialog(tools, ReportDialog).text()  # type: ignore[attr-defined]
    for words in ("NVIDIA H200", "118.9 GB held, 19.4 GB free of 139.8 GB", "1,931,264 tokens",
                  "8,192 tokens", "compiled graphs", "vLLM 0.32.0", "torch 2.13.0+cu130",
                  "transformers 5.19.0", "“Max tokens” is lowered to that"):
        assert words in text, words
    facts = findings.engine(EngineView("x", EngineState.FAILED, problem=Problem(
        "model.missing", "No model.", "Get it.")), "X")
    assert facts.remedy is not None


def test_an_engine_without_figures_shows_none() -> None:
    found = findings.engine(EngineView("e", EngineState.READY, ready=EngineReady(
        "e", "m", "CPU", 2)), "Built in")
    assert dict(found.items[0].facts) == {"Model": "m", "Device": "CPU", "Pages at once": "2"}


# --- the interpreter


def test_the_interpreter_is_checked_and_the_command_is_shown(
        tools: MainWindow, qtbot: QtBot, tmp_path: Path) -> None:
    environment = environments.make(tmp_path / "env")
    tools.commands.change_setting("engine", "vllm")
    tools.commands.change_setting("engine_interpreter", str(environment))
    tools.settings.set_advanced(True)
    tools.settings._fields["engine_interpreter"].buttons["check"].click()
    report = dialog(tools, ReportDialog)
    assert isinstance(report, ReportDialog)
    assert report.progress.isVisible()
    qtbot.waitUntil(lambda: report.found is not None, timeout=WAIT)
    assert "This Python cannot run the engine." in report.text()
    assert f"uv pip install --python {environment}/bin/python msgspec pillow vllm" in report.text()
    assert "msgspec, pillow, vllm" in shown(report)
    assert not report.progress.isVisible()
    # once more, when it has been installed
    environments.pretend(environments.give(environment, "msgspec", "PIL"), "vllm", "vllm",
                         "0.30.0", "raise ImportError('libcudart.so.13')")
    report.again.click()
    qtbot.waitUntil(lambda: "libcudart.so.13" in report.text(), timeout=WAIT)
    assert "vLLM" in shown(report)


def test_a_closed_check_leaves_nothing_running(
        tools: MainWindow, qtbot: QtBot, tmp_path: Path,
        no_process_left: Callable[[], list[str]]) -> None:
    slow = programs.write(tmp_path / "slow-python", "#!/bin/sh\nsleep 600\n")
    tools.commands.change_setting("engine", "vllm")
    tools.commands.change_setting("engine_interpreter", str(slow))
    tools.commands.tools.check()
    qtbot.waitUntil(lambda: any("sleep 600" in line for line in no_process_left()), timeout=WAIT)
    dialog(tools, ReportDialog).close()
    tools.commands.tools.close()  # as at the window's end: it waits until they are killed
    processes.until(lambda: not any("sleep 600" in line for line in no_process_left()))
# --- the servers


def test_servers_are_probed_and_the_report_is_in_words(
        tools: MainWindow, qtbot: QtBot) -> None:
    tools.commands.change_setting("engine", "remote")
    tools.commands.change_setting("servers", "http://127.0.0.1:9/v1")
    tools.settings._fields["servers"].buttons["probe"].click()
    report = dialog(tools, ReportDialog)
    assert isinstance(report, ReportDialog)
    qtbot.waitUntil(lambda: report.found is not None, timeout=WAIT)
    assert "0 of 1 server reads pages as it should." in report.text()
    assert "http://127.0.0.1:9/v1" in shown(report)
    assert "cannot be reached" in report.text()
    tools.commands.change_setting("servers", "")
    tools.commands.tools.probe()
    report = dialog(tools, ReportDialog)
    assert isinstance(report, ReportDialog)
    qtbot.waitUntil(lambda: report.found is not None, timeout=WAIT)
    assert report.remedy.text() == "Enter servers…"


@pytest.fixture
def ring(monkeypatch: pytest.MonkeyPatch) -> Iterator[MemoryKeyring]:
    monkeypatch.delenv(keys.VARIABLE, raising=False)
    before, made = keyring.get_keyring(), MemoryKeyring()
    keyring.set_keyring(made)
    yield made
    keyring.set_keyring(before)


def test_a_key_is_kept_in_the_keyring_and_never_shown(
        tools: MainWindow, qtbot: QtBot, ring: MemoryKeyring, verso_home: Path) -> None:
    tools.commands.change_setting("engine", "remote")
    tools.commands.change_setting("servers", "http://gpu1:8000/v1 http://gpu2:8000/v1")
    tools.settings._fields["servers"].buttons["key"].click()
    asked = dialog(tools, ServerKeyDialog)
    assert isinstance(asked, ServerKeyDialog)
    qtbot.waitUntil(lambda: "No key" in asked.state.text(), timeout=WAIT)
    asked.server.setCurrentText("http://gpu2:8000/v1")
    asked.key.setText("sk-very-secret-4711")
    assert asked.key.echoMode() == asked.key.EchoMode.Password
    asked.save.click()
    assert asked.key.text() == ""
    qtbot.waitUntil(lambda: "is in the keyring" in asked.state.text(), timeout=WAIT)
    assert ring.held == {(keyrings.SERVERS, "http://gpu2:8000/v1"): "sk-very-secret-4711"}
    assert "secret" not in shown(asked)
    assert "secret" not in str(tools.session.values.as_dict())
    asked.forget.click()
    qtbot.waitUntil(lambda: "No key" in asked.state.text(), timeout=WAIT)
    assert ring.held == {}
    ring.broken = True
    asked.key.setText("sk-another-secret")
    asked.save.click()
    qtbot.waitUntil(lambda: "VERSO_API_KEY" in asked.state.text(), timeout=WAIT)


# --- the model


@pytest.fixture
def hub() -> Iterator[Hub]:
    with serving(Hub()) as running:
        yield running


def test_the_model_is_downloaded_resumed_and_used(
        tools: MainWindow, qtbot: QtBot, hub: Hub, ring: MemoryKeyring, tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HF_ENDPOINT", "HF_TOKEN", "HF_HUB_OFFLINE", "http_proxy", "HTTP_PROXY",
                 "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    hub.hold = threading.Event()
    target = tmp_path / "models" / "DeepSeek-OCR-2"
    tools.commands.change_setting("engine", "vllm")
    tools.commands.change_setting("hub_address", hub.address)
    tools.commands.tools.get_model()
    box = dialog(tools, ModelDialog)
    assert isinstance(box, ModelDialog)
    assert box.folder.text() == str(download_folder())
    box.folder.setText(str(target))
    assert box.start.text() == "Download"
    qtbot.waitUntil(lambda: "free there" in box.room.text(), timeout=WAIT)
    box.start.click()
    qtbot.waitUntil(lambda: box.bar.value() > 0 and " MB of " in box.state.text(), timeout=WAIT)
    assert not box.folder.isEnabled()
    # closed, it goes on; opened again, it is shown again
    box.close()
    assert tools.commands.tools.download.running
    tools.commands.tools.get_model()
    box = dialog(tools, ModelDialog)
    assert isinstance(box, ModelDialog)
    assert box.running
    assert box.folder.text() == str(target)
    box.cancel.click()
    qtbot.waitUntil(lambda: "Stopped" in box.state.text(), timeout=WAIT)
    assert box.start.text() == "Resume"
    hub.hold.set()
    hub.hold = None
    box.start.click()
    qtbot.waitUntil(lambda: "here and complete" in box.state.text(), timeout=WAIT)
    assert (target / "config.json").is_file()
    assert tools.session.values["model"] == str(target)


def test_a_download_that_cannot_begin_says_why(
        tools: MainWindow, qtbot: QtBot, tmp_path: Path) -> None:
    tools.commands.change_setting("engine", "vllm")
    tools.commands.change_setting("offline", True)
    tools.commands.tools.get_model()
    box = dialog(tools, ModelDialog)
    assert isinstance(box, ModelDialog)
    box.folder.setText(str(tmp_path / "m"))
    box.start.click()
    qtbot.waitUntil(lambda: "offline" in box.state.text(), timeout=WAIT)
    assert not box.running


def test_settings_stay_valid(tools: MainWindow) -> None:
    """What the tools write can be loaded again."""
    assert Values(tools.session.values.changed()) == tools.session.values
