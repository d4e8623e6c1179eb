"""From end to end: the real application, real vLLM under another Python, a model that recites.

The window, its Markdown and its JSON must show what the model wrote, and nothing may be left
running when the application is killed.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from pathlib import Path

import psutil
import pytest
from PIL import Image

from desktop.document.parser import parse
from tests.accelerator import real
from tests.accelerator.real import CONTEXT, LARGE
from tests.e2e.application import Application, finished
from tests.support import tiny_vllm


@pytest.fixture
def page(tmp_path: Path) -> Path:
    """A picture of a page."""
    path = tmp_path / "page.png"
    with Image.open(real.bitmap(tmp_path, LARGE)) as drawn:
        drawn.save(path)
    return path


@pytest.fixture
def chosen(verso_home: Path, engine_python: Path, tiny_model: Path) -> None:
    """The settings that a person would have made."""
    config = verso_home / "config"
    config.mkdir(parents=True, exist_ok=True)
    (config / "settings.json").write_text(json.dumps({"version": 1, "settings": {
        "engine": "vllm", "engine_interpreter": str(engine_python), "model": str(tiny_model),
        "dtype": "float32", "eager": True, "max_model_len": CONTEXT}}))


@pytest.mark.usefixtures("chosen")
def test_what_the_model_writes_is_seen_and_exported(page: Path, tmp_path: Path,
                                                    test_mark: str) -> None:
    script = real.Script(tmp_path)
    script.write(real.recording())
    begin = time.monotonic()
    application = Application(environment=tiny_vllm.environment(script.file))
    try:
        application.wait(lambda state: True)
        assert application.ask("drop", str(page)) is True
        state = application.wait(
            lambda s: finished(s) or s["engine"] == "failed", real.LOAD + real.READ)
        assert state["documents"][0]["pages"] == ["complete"], state
        real.figures.append(
            f"window: page dropped and read after {time.monotonic() - begin:.0f} s, "
            "start of application and engine included")
        expected = parse(real.recording())
        state = application.wait(lambda s: len(s["blocks"]) == len(expected))
        assert state["blocks"] == [block.markdown for block in expected]

        out = tmp_path / "out"
        application.ask("export", str(out))
        application.wait(lambda s: "exported" in s["toast"] or "cannot" in s["toast"])
        report = json.loads((out / "page" / "page.json").read_text())
        assert report["engine"]["name"] == "vllm"
        assert report["engine"]["model"] == "tiny-ocr-2"
        [read] = report["pages"]
        assert read["status"] == "complete"
        assert 1121 < read["tokens"]["prompt"] < 1161
        assert read["tokens"]["output"] > 500
        assert [(block["label"], block["boxes"], block["markdown"]) for block in read["blocks"]] \
            == [(block.label, [list(box) for box in block.boxes], block.markdown)
                for block in expected]
        text = (out / "page" / "page.md").read_text()
        for block in expected:
            if block.label in ("text", "sub_title", "table"):
                assert block.markdown in text
        pictures = [block for block in expected if block.label == "image"]
        assert len(list((out / "page" / "images").iterdir())) == len(pictures) == 2

        # Killed while the engine is busy: nothing of either may live on.
        script.write()
        again = tmp_path / "again.png"
        page.rename(again)
        assert application.ask("drop", str(again)) is True
        application.wait(lambda s: any("streaming" in document["pages"]
                                       for document in s["documents"]), real.READ)
        running = _all_of(application, test_mark)
        assert any("EngineCore" in real.words(process) for process in running)
        pids = real.snapshot(running)
        os.kill(application.process.pid, signal.SIGKILL)
        application.process.wait(120)
        passed = real.gone(pids)
        real.figures.append(f"application killed: its {len(pids)} processes gone after "
                            f"{passed:.1f} s")
    finally:
        for process in _all_of(application, test_mark):
            process.kill()
        application.process.wait(120)


def _all_of(application: Application, mark: str) -> list[psutil.Process]:
    """The application and all that it started, in whatever session."""
    leaders = {application.process.pid}
    # It has ended, or one of them while we look.
    with contextlib.suppress(psutil.NoSuchProcess, ProcessLookupError):
        family = psutil.Process(application.process.pid).children(recursive=True)
        leaders |= {os.getsid(process.pid) for process in family}
    return real.of_sessions(leaders, mark)
