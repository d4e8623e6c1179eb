"""What the engine ``vllm`` refuses before it loads anything, in the real worker."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from desktop.protocol.messages import ProblemData
from tests.accelerator.real import RealEngine


@pytest.fixture
def refusal(engine_python: Path, tmp_path: Path) -> Iterator[Callable[..., ProblemData]]:
    """``refusal(MODEL, FOLDER …, **options)``: why the engine does not start."""
    made: list[RealEngine] = []

    def start(model: Path, *search: Path, **options: Any) -> ProblemData:
        made.append(RealEngine(engine_python, tmp_path, model, *search, **options))
        made[-1].start()
        refused = made[-1].refusal()
        assert refused.fatal
        assert refused.problem.hint
        return refused.problem

    yield start
    for engine in made:
        engine.close()
        assert engine.processes() == []


@pytest.fixture
def model(tiny_model: Path, tmp_path: Path) -> Path:
    """A copy of the model that may be spoilt."""
    return shutil.copytree(tiny_model, tmp_path / "model")


def test_a_version_that_cannot_read(refusal: Callable[..., ProblemData], model: Path,
                                    tmp_path: Path) -> None:
    """The installed vLLM says that it is 0.19.0: with that the model writes gibberish."""
    information = tmp_path / "search" / "vllm-0.19.0.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: vllm\nVersion: 0.19.0\n")
    problem = refusal(model, information.parent)
    assert problem.code == "vllm.version"
    assert "vLLM 0.19.0" in problem.message
    assert "0.20" in problem.hint


def test_weights_that_are_missing(refusal: Callable[..., ProblemData], model: Path) -> None:
    (model / "model.safetensors").unlink()
    problem = refusal(model)
    assert problem.code == "vllm.model"
    assert "model.safetensors" in problem.message


def test_weights_that_are_cut(refusal: Callable[..., ProblemData], model: Path) -> None:
    weights = model / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1000])
    problem = refusal(model)
    assert problem.code == "vllm.model"
    assert str(weights.stat().st_size) in problem.message


def test_arguments_that_would_kill_the_engine(refusal: Callable[..., ProblemData],
                                              model: Path) -> None:
    problem = refusal(model, engine_args={"mm_processor_kwargs": '{"crop_mode": false}'})
    assert problem.code == "vllm.argument_refused"
    assert "mm_processor_kwargs" in problem.message


def test_an_argument_that_this_vllm_does_not_have(refusal: Callable[..., ProblemData],
                                                  model: Path) -> None:
    problem = refusal(model, engine_args={"max_num_sequences": "4"})
    assert problem.code == "vllm.argument"
    assert "max_num_seqs" in problem.hint


@pytest.mark.parametrize("fault", ["no tag", "no spaces"])
def test_a_tokenizer_that_is_read_wrongly(refusal: Callable[..., ProblemData], model: Path,
                                          fault: str) -> None:
    """Both are found with the tokenizer that transformers makes of the folder, before the
    weights are loaded."""
    file = model / "tokenizer.json"
    tokenizer = json.loads(file.read_text())
    if fault == "no tag":
        tokenizer["added_tokens"] = [token for token in tokenizer["added_tokens"]
                                     if token["content"] != "<|ref|>"]
    else:
        tokenizer["decoder"] = {"type": "Strip", "content": "Ġ", "start": 1, "stop": 0}
    file.write_text(json.dumps(tokenizer))
    problem = refusal(model)
    assert problem.code == "vllm.tokenizer"
    assert ("<|ref|>" in problem.message) is (fault == "no tag")
