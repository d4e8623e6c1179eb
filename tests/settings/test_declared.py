"""One walk over every declared setting: whoever adds one need not add a test."""

from __future__ import annotations

import dataclasses
import json
import math
import re

import pytest

from desktop.jobs.engine import restart_for
from desktop.settings import (
    BY_KEY,
    SETTINGS,
    InvalidSetting,
    Setting,
    UnknownSetting,
    Value,
    Values,
    setting,
)
from desktop.settings.declare import Applies, Section

every = pytest.mark.parametrize("declared", SETTINGS, ids=lambda s: s.key)


def other_value(declared: Setting) -> Value:
    """A valid value that is not the default."""
    if declared.choices:
        others = [c for c in declared.choices if c != declared.default]
        return others[0] if others else declared.default
    if declared.kind is bool:
        return not declared.default
    if declared.key == "devices":
        return "0,1"
    if declared.kind is str:
        return f"{declared.default}x"
    assert isinstance(declared.default, (int, float))
    up = declared.default + (declared.step or 1)
    if declared.maximum is None or up <= declared.maximum:
        return declared.kind(up)
    return declared.kind(declared.default - (declared.step or 1))


def test_keys_and_flags_are_unique() -> None:
    assert len(BY_KEY) == len(SETTINGS)
    assert len({s.flag for s in SETTINGS}) == len(SETTINGS)


@every
def test_key_and_flag_are_well_formed(declared: Setting) -> None:
    assert re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", declared.key)
    assert re.fullmatch(r"--[a-z][a-z0-9-]*[a-z0-9]", declared.flag)
    assert setting(declared.key) is declared


@every
def test_words_are_there(declared: Setting) -> None:
    assert declared.title.strip() == declared.title != ""
    assert declared.title[0].isupper()
    assert declared.help.endswith(".")
    assert declared.allowed()
    assert all(label.strip() for label in declared.choices.values())
    assert isinstance(declared.section, Section)
    assert isinstance(declared.applies, Applies)


@every
def test_default_is_valid_and_of_the_declared_kind(declared: Setting) -> None:
    assert declared.kind in (bool, int, float, str)
    assert type(declared.default) is declared.kind
    assert declared.parse(declared.default) == declared.default


@every
def test_text_and_json_round_trip(declared: Setting) -> None:
    for value in (declared.default, other_value(declared)):
        for copy in (declared.parse(str(value)), declared.parse(json.loads(json.dumps(value)))):
            assert copy == value
            assert type(copy) is declared.kind


@every
def test_bounds_are_enforced(declared: Setting) -> None:
    if declared.kind in (int, float):
        assert declared.minimum is not None, "a number needs a lower bound"
        assert declared.parse(declared.minimum) == declared.minimum
        with pytest.raises(InvalidSetting):
            declared.parse(declared.minimum - 1)
        if declared.maximum is not None:
            assert declared.minimum < declared.maximum
            assert declared.parse(declared.maximum) == declared.maximum
            with pytest.raises(InvalidSetting):
                declared.parse(declared.maximum + 1)
    else:
        assert declared.minimum is declared.maximum is declared.step is None
        assert not declared.unit


@every
def test_nonsense_is_refused_with_a_way_out(declared: Setting) -> None:
    nonsense: list[object] = [None, [], {}, b"x"]
    if declared.kind is not str:
        nonsense += ["", "x", "nan", math.nan, "inf", 10**400]
    if declared.choices:
        nonsense += ["", "no-such-choice", 1]
    if declared.kind is int:
        nonsense += [1.5, True, "1e400"]
    for value in nonsense:
        with pytest.raises(InvalidSetting) as caught:
            declared.parse(value)
        problem = caught.value.problem()
        assert problem.code == "settings.invalid"
        assert declared.title in problem.message
        assert declared.allowed() in problem.hint


@every
def test_changing_it_changes_the_fingerprint_only_when_it_shapes_results(
    declared: Setting,
) -> None:
    engine = next(iter(sorted(declared.engines)), str(BY_KEY["engine"].default))
    base = Values({"engine": engine})
    changed = base.with_(**{declared.key: other_value(declared)})
    if changed == base:
        pytest.skip("has one value only")
    if declared.key == "engine":
        assert changed.fingerprint() != base.fingerprint()
    else:
        assert (changed.fingerprint() != base.fingerprint()) == declared.shapes_result
    assert changed.changed().get(declared.key) == other_value(declared)


@every
def test_declarations_are_immutable(declared: Setting) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        declared.default = declared.default  # type: ignore[misc]


def test_at_most_eight_are_visible_with_any_engine() -> None:
    engines = {"embedded"}.union(*(s.engines for s in SETTINGS))
    for engine in engines:
        shown = [s.key for s in SETTINGS if s.panel and s.visible_with(engine)]
        assert len(shown) <= 8, (engine, shown)


def test_unknown_keys_are_refused() -> None:
    with pytest.raises(UnknownSetting):
        setting("no_such_setting")
    with pytest.raises(UnknownSetting):
        Values({"no_such_setting": 1})


def test_a_setting_of_another_engine_does_not_touch_the_fingerprint() -> None:
    others = [s for s in SETTINGS if s.shapes_result and s.engines and not s.applies_to("embedded")]
    assert others, "the walk would prove nothing"
    for declared in others:
        changed = Values({declared.key: other_value(declared)})
        assert changed.fingerprint() == Values().fingerprint()


@pytest.mark.parametrize("value", [
    "http://user:hunter2@gpu1", "http://gpu1/v1?key=hunter2", "gpu1 https://hunter2@gpu2/",
    "hunter2@gpu1"])
def test_a_secret_in_an_address_is_neither_taken_nor_repeated(value: str) -> None:
    with pytest.raises(InvalidSetting) as caught:
        setting("servers").parse(value)
    assert "hunter2" not in repr(caught.value.problem())
    assert setting("servers").parse("http://gpu1:8000 https://gpu2/v1")


@pytest.mark.parametrize(("engine", "key", "before", "after", "restart"), [
    ("vllm", "ngram", "off", "retry", True), ("vllm", "ngram", "always", "off", True),
    ("vllm", "ngram", "retry", "always", False), ("vllm", "ngram", "off", "off", False),
    ("remote", "ngram", "off", "retry", False), ("embedded", "ngram", "off", "retry", False),
    ("vllm", "eager", False, True, True), ("remote", "eager", False, True, False),
    ("vllm", "crop", "auto", "off", False),
    # vLLM reserves room for 100 pages at once, or for as many as it is started with.
    ("vllm", "concurrency", 0, 100, False), ("vllm", "concurrency", 0, 101, True),
    ("vllm", "concurrency", 40, 128, True), ("vllm", "concurrency", 128, 101, False),
    ("vllm", "concurrency", 128, 0, False), ("vllm", "concurrency", 128, 129, True),
    ("remote", "concurrency", 0, 200, False), ("embedded", "concurrency", 0, 200, False)])
def test_what_an_engine_has_to_be_started_again_for(
        engine: str, key: str, before: Value, after: Value, restart: bool) -> None:
    assert setting(key).restarts(engine, before, after) is restart
    old = Values({"engine": engine, key: before})
    assert restart_for(old, old.with_(**{key: after})) == ((key,) if restart else ())


def test_a_password_in_a_proxy_is_kept_from_what_is_handed_on() -> None:
    values = Values({"proxy": "http://user:hunter2@proxy:3128", "dpi": 200})
    assert values["proxy"] == "http://user:hunter2@proxy:3128"
    noted = values.discreet()
    assert noted == {**values.as_dict(), "proxy": "http://…@proxy:3128"}
    assert Values({"proxy": "socks5://proxy:1080"}).discreet()["proxy"] == "socks5://proxy:1080"
