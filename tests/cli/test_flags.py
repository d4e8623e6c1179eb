"""Every declared setting has a flag that checks what it is given."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from desktop.cli.flags import add_settings, engine_arguments, values_of
from desktop.cli.main import Parser
from desktop.engines.registry import UnknownEngine
from desktop.errors import VersoError
from desktop.settings import SETTINGS, InvalidSetting, Setting, Value, Values
from tests.cli.conftest import Verso


def parsed(*words: str) -> argparse.Namespace:
    parser = Parser(prog="verso convert", allow_abbrev=False)
    add_settings(parser)
    return parser.parse_args(words)


def another(setting: Setting) -> Value:
    """An allowed value that is not the default."""
    if setting.choices:
        return next((choice for choice in setting.choices if choice != setting.default),
                    setting.default)
    if setting.kind is bool:
        return not setting.default
    if setting.kind is str:
        return "something" if setting.check is None or setting.check("something") else "1"
    low = setting.minimum if setting.minimum is not None else 0
    step = setting.step or 1
    value = setting.kind(low + step)
    return value if value != setting.default else setting.kind(value + step)


def written(value: Value) -> str:
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else str(value)


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.key)
def test_the_flag_sets_the_value(setting: Setting) -> None:
    value = another(setting)
    values = values_of(parsed(setting.flag, written(value)), Values())
    assert values[setting.key] == value
    assert type(values[setting.key]) is setting.kind
    others = {key: other for key, other in values.as_dict().items() if key != setting.key}
    assert others.items() <= Values().as_dict().items()
    assert values_of(parsed(), Values({setting.key: value}))[setting.key] == value


@pytest.mark.parametrize("setting", [s for s in SETTINGS if s.choices or s.kind is not str],
                         ids=lambda setting: setting.key)
def test_a_bad_value_names_the_flag_and_what_is_allowed(
        setting: Setting, verso: Verso, tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting):
        values_of(parsed(setting.flag, "no such value"), Values())
    ran = verso("convert", tmp_path, "-o", tmp_path / "out", setting.flag, "no such value")
    assert ran.status == 2
    assert len(ran.err.splitlines()) == 1
    assert setting.flag in ran.err
    assert "no such value" in ran.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("setting", [s for s in SETTINGS if s.maximum is not None],
                         ids=lambda setting: setting.key)
def test_a_value_out_of_range_is_refused(setting: Setting) -> None:
    assert setting.maximum is not None
    with pytest.raises(InvalidSetting):
        values_of(parsed(setting.flag, str(setting.maximum + 1)), Values())


def test_engine_arguments() -> None:
    assert engine_arguments(["script=a=b", "x="], "scripted") == {"script": "a=b", "x": ""}
    assert engine_arguments([], "embedded") == {}
    for bad in ("script", "=x"):
        with pytest.raises(ValueError, match=bad):
            engine_arguments([bad], "scripted")
    with pytest.raises(UnknownEngine):
        engine_arguments(["a=b"], "nonsense")
    with pytest.raises(VersoError) as caught:
        engine_arguments(["a=b"], "embedded")
    assert caught.value.problem().code == "engine.no_arguments"
