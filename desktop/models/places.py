"""Where a model may be on this machine: what a person chose, what Verso downloaded, what other
programs left in their caches.

Caches as their owners lay them out:

- Hugging Face (huggingface_hub, ``constants.py`` and ``file_download.py``): the folder
  ``HF_HUB_CACHE``, else ``HUGGINGFACE_HUB_CACHE``, else ``HF_HOME/hub``, else
  ``XDG_CACHE_HOME/huggingface/hub``, else ``~/.cache/huggingface/hub``; in it
  ``models--OWNER--NAME/snapshots/COMMIT``, and ``refs/main`` with the commit that was newest.
- ModelScope (modelscope_hub, ``_download.py``, ``_repo_cache_dir`` and ``_find_legacy_repo_dir``):
  the folder ``MODELSCOPE_CACHE``, else ``~/.cache/modelscope``; in it
  ``models/OWNER--NAME/snapshots/REVISION``, in older ones ``models/OWNER/NAME`` or
  ``hub/models/OWNER/NAME``, and before that ``hub/OWNER/NAME``, with ``___`` for a dot in NAME.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from desktop import paths
from desktop.engines.model.weights import check
from desktop.i18n import N_
from desktop.models.errors import ModelMissing
from desktop.settings import Values

MODEL = "deepseek-ai/DeepSeek-OCR-2"
"""The model's name, the same on both hubs."""

ORIGINS = {
    "chosen": N_("chosen in the settings"),
    "verso": N_("downloaded by Verso"),
    "huggingface": N_("in the cache of Hugging Face"),
    "modelscope": N_("in the cache of ModelScope"),
}


@dataclass(frozen=True)
class Place:
    """A folder with a model, or that is to have one. ``origin`` is a key of :data:`ORIGINS`."""

    folder: Path
    origin: str


def models_dir() -> Path:
    """The folder under which Verso keeps models; it need not exist."""
    return paths.data_dir() / "models"


def download_folder(model: str = MODEL) -> Path:
    """Where Verso puts MODEL unless told otherwise."""
    return models_dir() / model.rpartition("/")[2]


def find(values: Values, model: str = MODEL, *,
         environment: Mapping[str, str] | None = None) -> Place | None:
    """The folder to load the model from, None where there is none.

    What a person chose in the setting ``model`` counts as it is, even when nothing is there: the
    engine says what it lacks. Otherwise the first complete one of :func:`places`. Reads some
    headers: milliseconds, except on a slow network drive.
    """
    if values["model"]:
        return Place(Path(values["model"]).expanduser().absolute(), "chosen")
    return next((place for place in places(model, environment=environment)
                 if check(place.folder).complete), None)


def locate(values: Values, model: str = MODEL) -> Path:
    """Like :func:`find`; raises :class:`ModelMissing` where there is none."""
    found = find(values, model)
    if found is None:
        raise ModelMissing(model=model)
    return found.folder.absolute()  # an engine has another working folder


def places(model: str = MODEL, *,
           environment: Mapping[str, str] | None = None) -> Iterator[Place]:
    """Every folder where MODEL is, complete or not, the best first."""
    env = os.environ if environment is None else environment
    own = download_folder(model)
    if own.is_dir():
        yield Place(own, "verso")
    yield from (Place(path, "huggingface") for path in _huggingface(model, env))
    yield from (Place(path, "modelscope") for path in _modelscope(model, env))


def _huggingface(model: str, env: Mapping[str, str]) -> Iterator[Path]:
    repository = _huggingface_cache(env) / f"models--{model.replace('/', '--')}"
    newest = ""
    # Only the order of the snapshots depends on it.
    with contextlib.suppress(OSError, UnicodeDecodeError):
        newest = (repository / "refs" / "main").read_text(encoding="ascii").strip()
    snapshots = _folders(repository / "snapshots")
    yield from sorted(snapshots, key=lambda path: (path.name != newest, -_age(path)))


def _huggingface_cache(env: Mapping[str, str]) -> Path:
    for variable, below in (("HF_HUB_CACHE", ""), ("HUGGINGFACE_HUB_CACHE", ""),
                            ("HF_HOME", "hub"), ("XDG_CACHE_HOME", "huggingface/hub")):
        if env.get(variable):
            return Path(os.path.expandvars(env[variable])).expanduser() / below
    return Path("~/.cache/huggingface/hub").expanduser()


def _modelscope(model: str, env: Mapping[str, str]) -> Iterator[Path]:
    base = Path(env.get("MODELSCOPE_CACHE") or "~/.cache/modelscope").expanduser()
    owner, _, name = model.partition("/")
    yield from sorted(_folders(base / "models" / f"{owner}--{name}" / "snapshots"),
                      key=lambda path: -_age(path))
    for middle in ("models", "hub/models", "hub", ""):
        for spelling in dict.fromkeys((name, name.replace(".", "___"))):
            folder = base / middle / owner / spelling
            if folder.is_dir():
                yield folder


def _folders(parent: Path) -> list[Path]:
    try:
        return [path for path in parent.iterdir() if path.is_dir()]
    except OSError:
        return []  # no such cache, or not ours to read


def _age(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
