"""Interpreter and model are looked up before the engine starts."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from desktop.engines import registry
from desktop.errors import VersoError
from desktop.jobs.events import EngineState, EngineUpdated, EngineView, PageState
from desktop.jobs.preparing import needs_preparing, prepare
from desktop.jobs.session import Session
from desktop.settings import Values
from tests.jobs.conftest import SHORT, Heard
from tests.support import environments, programs

VLLM = registry.EngineEntry("vllm", "vLLM", "", "nowhere:Engine", needs=("vllm",), arguments=True)


@pytest.fixture(autouse=True)
def engine_vllm(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An engine "vllm" that this Python cannot run, and no model anywhere."""
    rest = tuple(entry for entry in registry.ENGINES if entry.name != "vllm")
    monkeypatch.setattr(registry, "ENGINES", (*rest, VLLM))
    for key in ("HF_HUB_CACHE", "HF_HOME", "MODELSCOPE_CACHE", "HUGGINGFACE_HUB_CACHE"):
        monkeypatch.setenv(key, str(tmp_path / "no-cache"))


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    return environments.scripted_vllm(tmp_path / "env")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return environments.model(tmp_path / "model")


def test_only_engines_with_a_model_of_their_own_are_prepared() -> None:
    assert needs_preparing("vllm")
    assert not needs_preparing("embedded")
    prepared = prepare(Values({"engine": "embedded"}), {})
    assert prepared.interpreter is None


def test_without_an_interpreter_the_engine_is_judged_here(model: Path) -> None:
    with pytest.raises(VersoError) as caught:
        prepare(Values({"engine": "vllm", "model": str(model)}), {})
    assert caught.value.code == "engine.not_installed"
    assert sys.executable in caught.value.problem().hint


def test_with_one_it_is_judged_there(environment: Path, model: Path) -> None:
    values = Values({"engine": "vllm", "model": str(model),
                     "engine_interpreter": str(environment)})
    prepared = prepare(values, {"seed": "3", "max_model_len": "text"})
    assert prepared.interpreter == str(environment / "bin" / "python")
    assert prepared.settings["model"] == str(model)
    assert prepared.settings["engine_args"] == {"seed": "3", "max_model_len": "text"}
    assert prepared.settings["max_model_len"] == 8192  # declared values keep their types


def test_a_model_that_is_nowhere(environment: Path) -> None:
    with pytest.raises(VersoError) as caught:
        prepare(Values({"engine": "vllm", "engine_interpreter": str(environment)}), {})
    assert caught.value.code == "model.missing"
    assert caught.value.problem().hint


def test_the_downloaded_model_is_found_by_itself(environment: Path, verso_home: Path) -> None:
    folder = environments.model(verso_home / "data" / "models" / "DeepSeek-OCR-2")
    values = Values({"engine": "vllm", "engine_interpreter": str(environment)})
    assert prepare(values, {}).settings["model"] == str(folder)


@pytest.mark.parametrize(("vllm", "code"), [
    ("0.18.0", "legacy.version"), ("0.8.5.post1", "model.missing")])
def test_the_official_code_needs_its_vllm_before_anything_else(
        tmp_path: Path, vllm: str, code: str) -> None:
    """Neither model nor official code is here, either; with the wrong vLLM they do not help."""
    site = environments.give(environments.make(tmp_path / "legacy"), "msgspec", "PIL")
    environments.pretend(site, "vllm", "vllm", vllm)
    with pytest.raises(VersoError) as caught:
        prepare(Values({"engine": "ascend-legacy",
                        "engine_interpreter": str(tmp_path / "legacy")}), {})
    assert caught.value.problem().code == code


def test_the_official_code_comes_after_the_model(tmp_path: Path, model: Path,
                                                 monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    site = environments.give(environments.make(tmp_path / "legacy"), "msgspec", "PIL")
    environments.pretend(site, "vllm", "vllm", "0.8.5.post1")
    with pytest.raises(VersoError) as caught:
        prepare(Values({"engine": "ascend-legacy", "model": str(model),
                        "engine_interpreter": str(tmp_path / "legacy")}), {})
    assert caught.value.problem().code == "legacy.no_code"


# --- the session with it


class Stage:
    """A session that can be waited for."""

    def __init__(self, home: Path, values: Values) -> None:
        self.session = Session(home / "journal.sqlite", home / "cache", values)
        self.heard = Heard()
        self.session.subscribe(self.heard)

    def until(self, state: EngineState, name: str = "") -> EngineView:
        def there() -> bool:
            views = [event.engine for event in self.heard.of(EngineUpdated)]
            return bool(views) and views[-1].state is state and name in ("", views[-1].name)
        self.heard.until(there, f"never {state}: {self.session.engine}")
        return self.heard.of(EngineUpdated)[-1].engine


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
          no_process_left: object) -> Iterator[Callable[[Values], Stage]]:
    monkeypatch.setenv("VERSO_SCRIPT", json.dumps({"pages": [SHORT]}))
    made: list[Stage] = []

    def begin(values: Values) -> Stage:
        made.append(Stage(tmp_path, values))
        return made[-1]

    yield begin
    for one in made:
        one.session.close()


def test_pages_are_read_under_the_chosen_interpreter_and_a_change_restarts_the_engine(
        stage: Callable[[Values], Stage], environment: Path, model: Path, tmp_path: Path,
        samples: Path) -> None:
    values = Values({"engine": "vllm", "model": str(model)})
    one = stage(values)
    one.session.warm_up()
    failed = one.until(EngineState.FAILED)
    assert failed.problem is not None
    assert failed.problem.code == "engine.not_installed"
    # another interpreter is another try, by itself
    one.session.set_values(values.with_(engine_interpreter=str(environment)))
    one.session.add([samples / "scan.png"]).result()
    one.session.start()
    one.heard.until_page("1-1", PageState.COMPLETE)
    ready = one.until(EngineState.READY, "scripted").ready
    assert ready is not None
    # and one that cannot be used ends the engine that runs
    one.session.set_values(values.with_(engine_interpreter=str(tmp_path)))
    one.session.rerun(["1-1"])
    failed = one.until(EngineState.FAILED)
    assert failed.problem is not None
    assert failed.problem.code == "interpreter.missing"
    # "try again" tries again
    one.session.set_values(values.with_(engine_interpreter=str(environment)))
    one.session.warm_up()
    one.until(EngineState.READY)


def test_closing_does_not_wait_for_a_check(
        stage: Callable[[Values], Stage], tmp_path: Path, model: Path) -> None:
    slow = programs.write(tmp_path / "slow-python", "#!/bin/sh\nsleep 600\n")
    one = stage(Values({"engine": "vllm", "model": str(model),
                        "engine_interpreter": str(slow)}))
    one.session.warm_up()
    one.until(EngineState.LOADING)
    done = threading.Event()
    threading.Thread(target=lambda: (one.session.close(), done.set()), daemon=True).start()
    assert done.wait(120)


def test_another_engine_does_not_wait_for_a_check(
        stage: Callable[[Values], Stage], tmp_path: Path, model: Path) -> None:
    slow = programs.write(tmp_path / "slow-python", "#!/bin/sh\nsleep 600\n")
    values = Values({"engine": "vllm", "model": str(model), "engine_interpreter": str(slow)})
    one = stage(values)
    one.session.warm_up()
    one.until(EngineState.LOADING)
    one.session.set_values(values.with_(engine="scripted"))
    one.until(EngineState.READY, "scripted")
