"""The doctor on machines that lack this and that: real subprocesses, a pretended nvidia-smi."""

from __future__ import annotations

import json
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from desktop import paths
from desktop.client import interpreter
from desktop.doctor import diagnosis, engines, gpus, text
from desktop.engines.registry import EngineEntry, entry
from desktop.settings import Values
from tests.cli.conftest import Verso, verso
from tests.support import environments, processes, programs

__all__ = ["verso"]  # a fixture

H200 = "0, GPU-aaa, NVIDIA H200, 143771, 143000, 3, 580.65"
BUSY = "1, GPU-bbb, NVIDIA L4, 23034, 1034, [N/A], 580.65"


@pytest.fixture(autouse=True)
def no_model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for key in ("HF_HUB_CACHE", "HF_HOME", "MODELSCOPE_CACHE", "HUGGINGFACE_HUB_CACHE"):
        monkeypatch.setenv(key, str(tmp_path / "no-cache"))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


@pytest.fixture
def smi(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Path]:
    """``smi(gpus=…, processes=…)``: nvidia-smi that prints these; ``smi(script=…)``: another."""
    folder = tmp_path / "tools"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")

    def make(gpus: tuple[str, ...] = (), processes: tuple[str, ...] = (),
             script: str = "", cuda: str = "13.0") -> Path:
        tool = folder / "nvidia-smi"
        lines = {"gpu": "\n".join(gpus), "apps": "\n".join(processes)}
        return programs.write(tool, "#!/bin/sh\n" + (script or (
            f"[ $# != 0 ] || {{ echo '| NVIDIA-SMI 580.65  CUDA Version: {cuda}  |'; exit; }}\n"
            f"case \"$1\" in --query-gpu=*) cat <<'END'\n{lines['gpu']}\nEND\n;;"
            f" *) cat <<'END'\n{lines['apps']}\nEND\n;; esac\n")))

    return make


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return environments.model(tmp_path / "model")


def vllm_environment(folder: Path, platform: str, version: str = "0.30.0") -> Path:
    """An environment with a vLLM that says it computes on PLATFORM."""
    site = environments.give(environments.make(folder), "msgspec", "PIL", "packaging")
    environments.pretend(site, "vllm", "vllm", version)
    (site / "vllm" / "platforms.py").write_text(
        f"class current_platform:\n    device_type = {platform!r}\n"
        f"    is_unspecified = staticmethod(lambda: {not platform})\n")
    environments.pretend(site, "transformers", "transformers", "5.9.0")
    return folder


def vllm(**values: object) -> Values:
    return Values({"engine": "vllm", **{key: str(value) for key, value in values.items()}})


# --- GPUs


def test_gpus_and_who_uses_them(smi: Callable[..., Path]) -> None:
    smi((H200, BUSY), ("GPU-bbb, 4711, /usr/bin/python3, 22000", "GPU-bbb, 4712, x, [N/A]"))
    found = gpus.look()
    assert found.problem is None
    first, second = found.found
    assert (first.device.name, first.busy, first.driver) == ("NVIDIA H200", 3, "580.65")
    assert first.device.total == 143771 << 20
    assert first.device.users == ()
    assert second.busy is None
    assert [(user.pid, user.name, user.bytes) for user in second.device.users] == [
        (4711, "python3", 22000 << 20), (4712, "x", 0)]


LISTED = """\
GPU 0: NVIDIA H200 (UUID: GPU-aaa)
  MIG 1g.18gb     Device  0: (UUID: MIG-11aa)
  MIG 3g.71gb     Device  1: (UUID: MIG-22bb)
GPU 1: NVIDIA L4 (UUID: GPU-bbb)
"""


def divided(smi: Callable[..., Path]) -> None:
    """The first of two GPUs is in parts."""
    smi(script=f"case \"$1\" in --query-gpu=*) cat <<'END'\n{H200}\n{BUSY}\nEND\n;;"
               f" -L) cat <<'END'\n{LISTED}END\n;; esac\n")


def test_a_gpu_in_parts(smi: Callable[..., Path], tmp_path: Path, model: Path,
                        verso: Verso) -> None:
    divided(smi)
    first, second = gpus.look().found
    assert [(part.uuid, part.name, part.number) for part in first.parts] == [
        ("MIG-11aa", "MIG 1g.18gb", 0), ("MIG-22bb", "MIG 3g.71gb", 0)]
    assert (first.device.partitioned, second.device.partitioned) == (True, False)
    assert second.parts == ()
    assert "MIG 3g.71gb: MIG-22bb" in verso("doctor").out
    told = verso("doctor", "--json").summary["machine"]["gpus"]
    assert told[0]["parts"][1] == {"uuid": "MIG-22bb", "name": "MIG 3g.71gb"}
    environment = vllm_environment(tmp_path / "env", "cuda")
    for devices, code in (("MIG-22bb", None), ("MIG-22", None), ("MIG-3", "vllm.device"),
                          ("GPU-bbb", "vllm.memory"), ("GPU-c", "vllm.device")):
        values = vllm(engine_interpreter=environment, model=model, devices=devices)
        found = engines.examine(entry("vllm"), values, gpus.look())
        assert [problem.code for problem in found.problems] == ([code] if code else [])


def test_a_machine_without_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert gpus.look() == gpus.Gpus()


def test_a_driver_that_fails_or_hangs(smi: Callable[..., Path],
                                      no_process_left: Callable[[], list[str]]) -> None:
    smi(script="echo 'NVIDIA-SMI has failed because it could not communicate with the NVIDIA "
               "driver.'; exit 9\n")
    problem = gpus.look().problem
    assert problem is not None
    assert problem.code == "doctor.driver"
    assert "could not communicate" in problem.message
    smi(script="sleep 600 & wait\n")
    problem = gpus.look(seconds=0.5).problem
    assert problem is not None
    assert problem.code == "doctor.driver_silent"
    processes.until(lambda: not no_process_left())


def test_junk_from_the_tool_is_no_gpu(smi: Callable[..., Path]) -> None:
    smi(("a warning that is no table",))
    assert gpus.look().found == ()


# --- engines


def test_the_built_in_engine_can_start() -> None:
    found = engines.examine(entry("embedded"), Values())
    assert found.can_start, found.problems


def test_no_engine_can_start_without_a_folder_for_verso(tmp_path: Path, verso: Verso,
                                                        monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("VERSO_CACHE_DIR", str(tmp_path / "file" / "verso"))
    [problem] = engines.examine(entry("embedded"), Values({})).problems
    assert problem.code == "paths.folder"
    ran = verso("doctor", "--json")
    assert ran.status == 1
    jsonschema.validate(ran.summary, schema())


def test_models_of_the_built_in_engine_that_are_gone(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "rapidocr/models").mkdir(parents=True)
    (tmp_path / "rapidocr/__init__.py").write_text("")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    found = engines.examine(entry("embedded"), Values())
    assert [problem.code for problem in found.problems] == ["engine.embedded.model"]
    assert "PP-OCRv6_det_small.onnx" in found.problems[0].message
    (tmp_path / "rapidocr/models/PP-OCRv6_det_small.onnx").write_bytes(b"no model")
    found = engines.examine(entry("embedded"), Values())
    assert "PP-OCRv6_det_small.onnx" in found.problems[0].message
    assert engines.examine(entry("embedded"), Values(), thorough=False).can_start


def test_packages_that_cannot_be_imported(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken_thing.py").write_text("raise ImportError('libGL.so.1: not there')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    broken = EngineEntry("x", "X", "", "m:C", needs=("broken_thing",))
    found = engines.examine(broken, Values())
    assert [problem.code for problem in found.problems] == ["doctor.broken"]
    assert "libGL.so.1" in found.problems[0].message
    missing = engines.examine(EngineEntry("x", "X", "", "m:C", needs=("no_such",)), Values())
    assert [problem.code for problem in missing.problems] == ["engine.packages"]
    assert sys.executable in missing.problems[0].hint


def test_vllm_without_anything_says_all_that_is_missing() -> None:
    found = engines.examine(entry("vllm"), vllm(), gpus.Gpus())
    if not entry("vllm").missing():
        pytest.skip("vLLM is installed in the Python that runs the tests")
    assert [problem.code for problem in found.problems] == [
        "engine.not_installed", "model.missing"]


def test_vllm_with_all_it_needs(tmp_path: Path, model: Path, smi: Callable[..., Path]) -> None:
    smi((H200,))
    values = vllm(engine_interpreter=vllm_environment(tmp_path / "env", "cuda"), model=model)
    found = engines.examine(entry("vllm"), values, gpus.look())
    assert found.can_start, found.problems
    assert found.interpreter is not None
    assert found.interpreter.platform == "cuda"
    assert found.model is not None
    assert found.model.origin == "chosen"


@pytest.mark.parametrize(("version", "code"), [
    ("0.19.0", "vllm.version"), ("0.15.1", "vllm.version"), ("0.30.0", "")])
def test_versions_are_judged_by_the_engines_own_table(
        version: str, code: str, tmp_path: Path, model: Path) -> None:
    environment = vllm_environment(tmp_path / "env", "cpu", version)
    report = interpreter.examine(str(environment), ("vllm",))
    assert [problem.code for problem in report.problems] == [code] * bool(code)
    assert report.versions["vllm"] == version


def test_a_full_gpu_is_told_with_numbers_and_a_way_out(
        tmp_path: Path, model: Path, smi: Callable[..., Path]) -> None:
    smi((BUSY.replace("1, GPU", "0, GPU"),), ("GPU-bbb, 4711, trainer, 22000",))
    values = vllm(engine_interpreter=vllm_environment(tmp_path / "env", "cuda"), model=model)
    found = engines.examine(entry("vllm"), values, gpus.look())
    assert [problem.code for problem in found.problems] == ["vllm.memory"]
    line = found.problems[0].line()
    assert "NVIDIA L4" in line
    assert "trainer 4711 (21.5 GB)" in line or "trainer 4711 (23.1 GB)" in line


@pytest.mark.parametrize(("changed", "code", "words"), [
    ({"devices": "0,7"}, "vllm.device", "no device 7"),
    ({"tensor_parallel": 2}, "vllm.devices", "2 devices; 1 can be used"),
    ({"data_parallel": 3}, "vllm.devices", "3 devices; 1 can be used")])
def test_devices_that_the_settings_want_and_are_not_there(
        changed: dict[str, object], code: str, words: str, tmp_path: Path, model: Path,
        smi: Callable[..., Path]) -> None:
    smi((H200,))
    values = vllm(engine_interpreter=vllm_environment(tmp_path / "env", "cuda"), model=model,
                  **changed)
    found = engines.examine(entry("vllm"), values, gpus.look())
    assert [problem.code for problem in found.problems] == [code]
    assert words in found.problems[0].message


@pytest.mark.parametrize(("driver", "code"), [
    ("12.2", "doctor.old_driver"), ("13.0", "vllm.no_device"), ("N/A", "vllm.no_device")])
def test_a_driver_that_is_too_old_for_torch(
        driver: str, code: str, tmp_path: Path, model: Path, smi: Callable[..., Path]) -> None:
    smi((H200,), cuda=driver)
    folder = vllm_environment(tmp_path / "env", "")
    site = next((folder / "lib").glob("python*/site-packages"))
    environments.pretend(site, "torch", "torch", "2.13.0", (
        "class cuda:\n    is_available = staticmethod(lambda: False)\n"
        "class version:\n    cuda = '13.0'\n"))
    found = engines.examine(entry("vllm"), vllm(engine_interpreter=folder, model=model),
                            gpus.look())
    assert [problem.code for problem in found.problems] == [code]
    if code == "doctor.old_driver":
        assert "580.65 knows CUDA up to 12.2" in found.problems[0].message


def test_no_gpu_for_a_vllm_that_needs_one(tmp_path: Path, model: Path) -> None:
    values = vllm(engine_interpreter=vllm_environment(tmp_path / "env", ""), model=model)
    found = engines.examine(entry("vllm"), values, gpus.Gpus())
    assert [problem.code for problem in found.problems] == ["vllm.no_device"]


def test_an_incomplete_model_and_another_model(tmp_path: Path, model: Path) -> None:
    values = vllm(engine_interpreter=vllm_environment(tmp_path / "env", "cpu"), model=model)
    (model / "tokenizer.json").unlink()
    found = engines.examine(entry("vllm"), values, thorough=False)
    assert [problem.code for problem in found.problems] == ["model.incomplete"]
    (model / "tokenizer.json").write_text("{}")
    (model / "config.json").write_text('{"architectures": ["LlamaForCausalLM"]}')
    found = engines.examine(entry("vllm"), values, thorough=False)
    assert [problem.code for problem in found.problems] == ["vllm.other_model"]
    gone = engines.examine(entry("vllm"), values.with_(model="/nowhere"), thorough=False)
    assert "no such folder" in gone.problems[0].message


# --- servers


class _Silent(BaseHTTPRequestHandler):
    """Knows nothing."""

    def do_GET(self) -> None:
        self.send_error(404)

    def log_message(self, format: str, *args: object) -> None: ...


@pytest.fixture
def server() -> Iterator[str]:
    """A web server that is no model's."""
    made = ThreadingHTTPServer(("127.0.0.1", 0), _Silent)
    threading.Thread(target=made.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{made.server_port}/v1"
    made.shutdown()
    made.server_close()


def test_servers_are_probed(server: str) -> None:
    values = Values({"engine": "remote", "servers": f"{server} http://127.0.0.1:9/v1"})
    found = engines.examine(entry("remote"), values)
    assert not found.can_start
    assert len(found.servers) == 2
    assert {problem.code for problem in found.problems} <= {
        "remote.unreachable", "remote.not_openai"}
    quick = engines.examine(entry("remote"), values, thorough=False)
    assert quick.can_start
    assert quick.servers == ()
    none = engines.examine(entry("remote"), Values(), thorough=False)
    assert [problem.code for problem in none.problems] == ["remote.no_servers"]
    wrong = engines.examine(entry("remote"), Values({"servers": "ftp://x"}), thorough=False)
    assert [problem.code for problem in wrong.problems] == ["remote.address"]


# --- the whole of it


def schema() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(
        (paths.resources() / "schema" / "doctor.schema.json").read_text("utf-8"))
    return loaded


def test_the_whole_examination_as_text_and_as_json(
        tmp_path: Path, model: Path, smi: Callable[..., Path], server: str) -> None:
    smi((H200,), ("GPU-aaa, 17, trainer, 700",))
    values = vllm(engine_interpreter=vllm_environment(tmp_path / "env", "cuda"), model=model,
                  servers=server)
    found = diagnosis.examine(values)
    assert found.can_start
    jsonschema.validate(found.as_dict(), schema())
    shown = "\n".join(text.lines(found))
    for words in ("NVIDIA H200", "used by trainer 17: 700 MB", "Python 3.", "vLLM 0.30.0",
                  "transformers 5.9.0", str(model), "chosen in the settings",
                  "The chosen engine “vllm” can start.", server):
        assert words in " ".join(shown.split()), words
    assert all(len(line) <= text.WIDTH or str(tmp_path) in line for line in shown.splitlines())


def test_the_command(verso: Verso, verso_home: Path) -> None:
    ran = verso("doctor")
    assert ran.status == 0, ran.out + ran.err
    assert "✓ Built in (embedded): can start – the chosen one" in ran.out
    assert ran.err == ""
    ran = verso("doctor", "--json", "--engine", "remote", "--servers", "http://127.0.0.1:9")
    assert ran.status == 1
    jsonschema.validate(ran.summary, schema())
    assert [each["name"] for each in ran.summary["engines"] if each["chosen"]] == ["remote"]
    ran = verso("doctor", "--engine", "none")
    assert ran.status == 2
    assert len(ran.complaints) == 1


def test_what_an_engine_got_when_it_last_started(verso: Verso, sample_pdf: Path,
                                                 tmp_path: Path) -> None:
    """Of the run before this one, with its date."""
    ask = ("doctor", "--engine", "scripted")
    assert "Last start" not in verso(*ask).out
    assert verso(*ask, "--json").summary["engines"][-1]["last_start"] is None
    script = json.dumps({"device": "NVIDIA H200", "cache_tokens": 912000, "context": 8192,
                         "memory_used": 2 << 30, "memory_total": 4 << 30,
                         "pages": [{"text": "Hello", "rate": 0}]})
    assert verso("convert", sample_pdf, "-o", tmp_path / "out", "--engine", "scripted",
                 "--engine-arg", f"script={script}").status == 0
    shown = " ".join(verso(*ask).out.split())
    today = datetime.now().astimezone()
    assert re.search(r"Last start \d{4}-\d\d-\d\d \d\d:\d\d: it got NVIDIA H200, script, 2.0 GB of "
                     r"4.0 GB held, KV cache of 912000 tokens, context 8192, 4 pages at once, "
                     r"python 3\.", shown), shown
    report = verso(*ask, "--json").summary
    jsonschema.validate(report, schema())
    [last] = [each["last_start"] for each in report["engines"] if each["chosen"]]
    assert (last["cache_tokens"], last["context"], last["memory"]["used"]) == (
        912000, 8192, 2 << 30)
    assert abs(datetime.fromisoformat(last["when"]) - today).total_seconds() < 600


def test_the_list_of_engines_says_why_one_cannot_start(verso: Verso) -> None:
    listed = verso("engines", "--json").summary["engines"]
    by_name = {each["name"]: each for each in listed}
    assert by_name["embedded"]["available"] is True
    assert by_name["remote"]["problems"][0]["code"] == "remote.no_servers"
    shown = verso("engines").out
    assert "vLLM server – cannot start" in shown
    assert "--servers" in shown
