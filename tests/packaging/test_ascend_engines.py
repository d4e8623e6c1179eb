"""What the containers for NPUs use of the engines: images, switches of the plugin, flags."""

from __future__ import annotations

import json
import re
import sys

import pytest

from desktop.engines import plugin
from desktop.engines.ascend.support import BEST, OLDEST
from tests.packaging.ascend import HERE, Machine, values
from tests.support import ascend_sources

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux scripts")


def test_the_images_are_those_of_the_table() -> None:
    script = (HERE / "start").read_text("utf-8")
    assert set(re.findall(r"base:=quay\.io/ascend/vllm-ascend:v(\S+?)}", script)) == {BEST, OLDEST}
    docker = (HERE / "Dockerfile").read_text("utf-8")
    assert f"ARG BASE=quay.io/ascend/vllm-ascend:v{BEST}\n" in docker


def test_the_server_is_given_switches_that_the_plugin_knows() -> None:
    script = (HERE / "start").read_text("utf-8")
    given = set(re.findall(r"-e (VERSO_\w+)=1", script))
    assert given == {plugin.ATTENTION_TYPE, plugin.TOKENIZER_CLASS, plugin.HEAD_SIZE, plugin.MASK}


@pytest.mark.engines
@pytest.mark.parametrize("version", [BEST, "0.23.0.post1"])
def test_the_server_takes_what_it_is_given(machine: Machine, version: str) -> None:
    """Every flag, key and variable is known to the real sources of vLLM and vllm-ascend."""
    ascend_sources.ensure()
    ascend, vllm = ascend_sources.roots(version)
    flags = "".join((vllm / "vllm" / name).read_text("utf-8") for name in (
        "engine/arg_utils.py", "entrypoints/openai/cli_args.py"))
    config = (ascend / "vllm_ascend/ascend_config.py").read_text("utf-8")
    for told in (machine.told(), machine.told("--graphs")):
        command = told[told.index("serve"):]
        for flag in (word for word in command if word.startswith("--")):
            name = flag.removeprefix("--").removeprefix("no-")
            assert f'"--{name}"' in flags or re.search(
                rf"^    {name}: ", flags, re.MULTILINE), flag
        for settings in values(command, "--additional-config"):
            keys = json.loads(settings)
            for key in (*keys, *keys["ascend_compilation_config"]):
                assert re.search(rf"\b{key}\b", config), key
        assert "VLLM_ASCEND_ENABLE_NZ=0" in values(told, "-e")
        processor, = values(command, "--logits-processors")
        module, _colon, name = processor.partition(":")
        source = (vllm / (module.replace(".", "/") + ".py")).read_text("utf-8")
        assert f"class {name}" in source
    assert '"VLLM_ASCEND_ENABLE_NZ"' in (ascend / "vllm_ascend/envs.py").read_text("utf-8")
