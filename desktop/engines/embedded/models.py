"""The ONNX models: where they lie and how they are opened. Nothing is ever fetched."""

from __future__ import annotations

import importlib.util
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnxruntime as ort

from desktop.engines.base import Progress
from desktop.errors import VersoError
from desktop.i18n import N_, _
from desktop.paths import resources

_ALONE = min(4, os.cpu_count() or 1)
"""Cores for a page that is read alone; more make these small models hardly any quicker."""


class ModelMissing(VersoError):
    """A model file that comes with the program is not there, or cannot be opened."""

    code = "engine.embedded.model"
    message = N_("The model file {file} of the built-in engine is missing or damaged.")
    hint = N_("Install Verso again.")


@dataclass(frozen=True)
class Models:
    """Open sessions; each may be used by several threads at once (one thread a call).

    Those that end in ``_alone`` are the same models on several cores, for a page that is read
    alone: it is done sooner, for about a fifth more work.
    """

    orientation: ort.InferenceSession
    layout: ort.InferenceSession
    detection: ort.InferenceSession
    recognition: ort.InferenceSession
    detection_alone: ort.InferenceSession
    recognition_alone: ort.InferenceSession


def load(progress: Progress) -> Models:
    """Open all models; raises :class:`ModelMissing`."""
    shipped = resources() / "models"
    rapidocr = _package("rapidocr") / "models"
    files = {
        "orientation": shipped / "lcnet_doc_orientation.onnx",
        "layout": shipped / "picodet_layout_cdla.onnx",
        "detection": rapidocr / "PP-OCRv6_det_small.onnx",
        "recognition": rapidocr / "PP-OCRv6_rec_small.onnx",
    }
    sessions: dict[str, Any] = {}
    for done, (role, file) in enumerate(files.items()):
        progress(_("Loading models"), done / len(files))
        sessions[role] = _session(file)
    for role in ("detection", "recognition"):
        sessions[f"{role}_alone"] = (_session(files[role], _ALONE) if _ALONE > 1
                                     else sessions[role])
    return Models(**sessions)


def _package(name: str) -> Path:
    """The folder of an installed package, without importing it."""
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise ModelMissing(file=name)
    return Path(next(iter(spec.submodule_search_locations)))


def _session(file: Path, threads: int = 1) -> ort.InferenceSession:
    """One thread a call: pages run side by side, which uses the cores better than threads
    inside a model. More THREADS wait asleep, not spinning, for the next part. Without the
    memory arena a big page's buffers go back to the system."""
    if not file.is_file():
        raise ModelMissing(file=file.name)
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.inter_op_num_threads = 1
    options.enable_cpu_mem_arena = False
    options.log_severity_level = 3
    try:
        return ort.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    except RuntimeError as error:
        raise ModelMissing(file=file.name, detail=str(error)) from error
