"""Server addresses in one form."""

from __future__ import annotations

import pytest

from desktop.engines.remote.addresses import normal, parse, place
from desktop.engines.remote.errors import BadAddress, NoServers


@pytest.mark.parametrize(("written", "meant"), [
    ("http://gpu1:8000/v1", "http://gpu1:8000/v1"),
    ("http://gpu1:8000", "http://gpu1:8000/v1"),
    ("http://gpu1:8000/", "http://gpu1:8000/v1"),
    ("gpu1:8000", "http://gpu1:8000/v1"),
    ("HTTPS://Gpu1/v1/", "https://gpu1/v1"),
    ("http://gpu1/v1/chat/completions", "http://gpu1/v1"),
    ("http://gpu1/ocr/v1", "http://gpu1/ocr/v1"),
    ("http://[::1]:8000", "http://[::1]:8000/v1"),
])
def test_one_form(written: str, meant: str) -> None:
    assert normal(written) == meant
    assert normal(meant) == meant


def test_several_each_once() -> None:
    assert parse(" http://a:1  http://b:1,\nhttp://a:1/v1 ") == ("http://a:1/v1", "http://b:1/v1")
    assert place("http://a:1/v1") == "a:1"


def test_none() -> None:
    with pytest.raises(NoServers):
        parse("  ")


@pytest.mark.parametrize("written", [
    "http://user:hunter2@gpu1:8000", "https://gpu1/v1?api_key=hunter2", "http://gpu1/#hunter2",
    "ftp://hunter2@gpu1/", "http://hunter2@gpu1:port/", "hunter2@gpu1"])
def test_no_secret_is_taken_or_repeated(written: str) -> None:
    with pytest.raises(BadAddress) as caught:
        parse(written)
    problem = caught.value.problem()
    assert "hunter2" not in repr(problem)
    assert "verso servers key" in problem.hint


@pytest.mark.parametrize("written", ["http://", "http://:80", "http://a b", "http://[::1", "x://y"])
def test_what_is_none(written: str) -> None:
    with pytest.raises(BadAddress):
        normal(written)
