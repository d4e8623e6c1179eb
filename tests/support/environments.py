"""Virtual environments that have, or pretend to have, what an engine needs; folders that look
like a whole model."""

from __future__ import annotations

import json
import struct
import venv
from importlib.util import find_spec
from pathlib import Path


def make(folder: Path) -> Path:
    """A virtual environment with nothing in it (it has no pip)."""
    venv.create(folder, with_pip=False, symlinks=True)
    return folder


def give(environment: Path, *modules: str) -> Path:
    """Let ENVIRONMENT have what this Python has of MODULES; its site-packages."""
    site = next((environment / "lib").glob("python*/site-packages"))
    for name in modules:
        spec = find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        folder = Path(spec.origin).parent
        (site / name).symlink_to(folder)
        for beside in folder.parent.glob(f"{'pillow' if name == 'PIL' else name}*[.-]*"):
            if beside.name != name:
                (site / beside.name).symlink_to(beside)
    return site


def pretend(site: Path, distribution: str, module: str, version: str, code: str = "") -> None:
    """An installed DISTRIBUTION that brings MODULE with CODE."""
    (site / module).mkdir()
    (site / module / "__init__.py").write_text(code)
    info = site / f"{distribution.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n")
    (info / "RECORD").write_text(f"{module}/__init__.py,,\n")


SCRIPTED_AS_VLLM = """
import sys
if "desktop.worker" in sys.orig_argv:
    from desktop.engines import registry
    registry.ENGINES = (registry.EngineEntry(
        "vllm", "vLLM", "", "desktop.engines.scripted:ScriptedEngine"),)
"""
"""Start-up code of an environment in which the engine "vllm" plays a script."""


def scripted_vllm(folder: Path) -> Path:
    """An environment that can be used for the engine "vllm", which plays a script there."""
    site = give(make(folder), "msgspec", "PIL")
    pretend(site, "vllm", "vllm", "0.99.0")
    (site / "sitecustomize.py").write_text(SCRIPTED_AS_VLLM)
    return folder


def model(folder: Path) -> Path:
    """A folder that looks like a whole model: every file there, with weights of four bytes."""
    folder.mkdir(parents=True)
    header = json.dumps({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    (folder / "model.safetensors").write_bytes(
        struct.pack("<Q", len(header)) + header + b"\0" * 4)
    (folder / "config.json").write_text('{"architectures": ["DeepseekOCR2ForCausalLM"]}')
    for name in ("tokenizer.json", "tokenizer_config.json", "processor_config.json"):
        (folder / name).write_text('{"version": "1.0"}')
    return folder
