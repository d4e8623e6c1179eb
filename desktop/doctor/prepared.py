"""A folder that ``verso prepare-npu`` made: whether everything that it put there still is."""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from desktop.engines.ascend import preparation
from desktop.engines.ascend.preparation import beside, layout
from desktop.engines.ascend.preparation.edits import Missing, Source
from desktop.engines.ascend.preparation.target import MANIFEST, touched
from desktop.engines.ascend_legacy import official
from desktop.engines.model import weights
from desktop.errors import Problem, VersoError
from desktop.i18n import N_
from desktop.settings import Values

_SHOWN = 8
"""Of what is missing, in a sentence."""


class PreparedMissing(VersoError):
    """A folder that was named is not there."""

    code = "ascend.prepared_missing"
    message = N_("There is no prepared code in {folder}.")
    hint = N_("Make it: verso prepare-npu SOURCE {folder}")


class PreparedByRecipe(VersoError):
    """The conversion script of the recipe made it."""

    code = "ascend.prepared_elsewhere"
    message = N_("The code in {folder} was converted by the recipe's own script, not by Verso: it "
                 "imports {module}.")
    hint = N_("It runs as the recipe says (source set_env.sh first). For one that finds its "
              "environment itself: verso prepare-npu SOURCE OTHER-FOLDER")


class NotPrepared(VersoError):
    """The official code as it came, or something else."""

    code = "ascend.not_prepared"
    message = N_("The code in {folder} has not been prepared for an NPU.")
    hint = N_("Make a copy that is: verso prepare-npu {folder} OTHER-FOLDER")


class PreparedIncomplete(VersoError):
    """Files or lines of the preparation are gone."""

    code = "ascend.prepared"
    message = N_("The prepared code in {folder} lacks what its preparation put there: {what}.")
    hint = N_("Make it anew: verso prepare-npu SOURCE {folder} (one that was changed by hand is "
              "kept beside it)")


class PreparedOther(VersoError):
    """A module of Verso's own is not as it was put there: cut off, emptied, or changed."""

    code = "ascend.prepared_other"
    message = N_("What Verso put into {folder} is not as it was: {files}.")
    hint = N_("Unless that was meant, make it anew: verso prepare-npu SOURCE {folder} (the one "
              "there is kept beside it)")


class PreparedModel(VersoError):
    """MODEL_PATH of its config.py names a folder without the model."""

    code = "ascend.prepared_model"
    message = N_("config.py in {folder} names the model {model}, and there it is not whole: "
                 "{what}.")
    hint = N_("Set MODEL_PATH there to the folder of DeepSeek-OCR-2 (verso models download gets "
              "it, and says where it is).")


@dataclass(frozen=True)
class Prepared:
    """What was found."""

    folder: str
    asked: bool
    """It was named; otherwise it only lies where one is made by default."""
    missing: tuple[Missing, ...] = ()
    """Files and lines that the preparation puts there."""
    touched: tuple[str, ...] = ()
    """Files that were changed, added or removed since."""
    model: str = ""
    """MODEL_PATH of its config.py; empty: not known."""
    settings: Mapping[str, Any] | None = None
    """What config.py sets for the NPU."""
    problems: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()

    @property
    def well(self) -> bool:
        """Whether its scripts can run."""
        return not self.problems

    def as_dict(self) -> dict[str, Any]:
        """As ``resources/schema/doctor.schema.json`` describes it."""
        def plain(problems: tuple[Problem, ...]) -> list[dict[str, str]]:
            return [{"code": each.code, "message": each.message, "hint": each.hint}
                    for each in problems]

        return {"folder": self.folder, "well": self.well,
                "missing": [{"file": each.file, "what": each.what} for each in self.missing],
                "changed": list(self.touched), "model": self.model,
                "problems": plain(self.problems), "warnings": plain(self.warnings)}


def look(folder: str = "") -> Prepared | None:
    """Examine FOLDER; empty: the one that is made by default, None where that is not there.

    Reads some small files; raises nothing, changes nothing.
    """
    path = Path(folder).expanduser() if folder else preparation.DEFAULT_TARGET
    if not folder and not (path / MANIFEST).is_file():
        return None
    asked, place = bool(folder), str(path.absolute())
    if not path.is_dir():
        return Prepared(place, asked, problems=(PreparedMissing(folder=place).problem(),))
    try:
        missing = tuple(preparation.shortcomings(path))
        changed = touched(path)
    except (VersoError, OSError) as error:
        problem = error.problem() if isinstance(error, VersoError) else PreparedIncomplete(
            folder=place, what=error.strerror or str(error)).problem()
        return Prepared(place, asked, problems=(problem,))
    if not (path / MANIFEST).is_file() and missing:
        return Prepared(place, asked, missing, problems=(_foreign(path, place).problem(),))
    config = _read(path, layout.CONFIG) or b""
    model = _model_path(config)
    problems = [_incomplete(place, missing).problem()] if missing else []
    warnings = [*_other(path, place, changed), *_model(path, place, model)]
    return Prepared(place, asked, missing, changed, model,
                    layout.settings(layout.CONFIG, config), tuple(problems),
                    tuple(error.problem() for error in warnings))


def look_around(values: Values) -> Prepared | None:
    """The prepared code that the engine for it would take, else the one that is made by default;
    None: neither is there."""
    with contextlib.suppress(VersoError):
        found = official.located(str(values["official_code"]))
        if (found / MANIFEST).is_file():
            code = look(str(found))
            return None if code is None else replace(code, asked=False)
    return look()


def _read(folder: Path, name: str) -> bytes | None:
    try:
        return (folder / name).read_bytes()
    except OSError:
        return None


def _foreign(path: Path, place: str) -> VersoError:
    """Why a folder without Verso's mark is not a prepared one."""
    line = layout.converted(lambda name: _read(path, name))
    module = layout.FOREIGN_PATCH_MODULE
    if module in line or (path / f"{module}.py").is_file():
        return PreparedByRecipe(folder=place, module=module)
    return NotPrepared(folder=place)


def _incomplete(place: str, missing: tuple[Missing, ...]) -> PreparedIncomplete:
    what = [str(each) for each in missing[:_SHOWN]]
    return PreparedIncomplete(
        folder=place, what=", ".join(what) + (" …" if len(missing) > _SHOWN else ""))


def _other(path: Path, place: str, changed: tuple[str, ...]) -> list[PreparedOther]:
    """The modules of Verso's own among what was CHANGED and is still there."""
    files = [name for name in changed if name in beside.modules() and (path / name).is_file()]
    return [PreparedOther(folder=place, files=", ".join(files))] if files else []


def _model_path(config: bytes) -> str:
    value = Source(layout.CONFIG, config).assigned().get("MODEL_PATH")
    return value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else ""


def _model(path: Path, place: str, model: str) -> list[PreparedModel]:
    """What is wrong with the model that its config.py names. A name as on a hub is fetched by the
    script itself."""
    if not model.startswith(("/", ".", "~")):
        return []
    found = weights.check((path / Path(model).expanduser()).resolve())
    if found.complete:
        return []
    return [PreparedModel(folder=place, model=model, what=found.words())]
