"""Errors reach the person whole, whichever process they arise in."""

from __future__ import annotations

import msgspec
import pytest

from desktop.intake import errors
from desktop.intake.errors import Failure, IntakeError, from_failure, to_failure

_VALUES = {"width": 3, "height": 4, "seconds": 60.0, "number": 9, "pages": 8, "text": "x-y",
           "found": "plain text"}


def _kinds(kind: type[IntakeError]) -> list[type[IntakeError]]:
    return [kind] + [deeper for narrower in kind.__subclasses__() for deeper in _kinds(narrower)]


KINDS = [kind for kind in _kinds(IntakeError) if kind.__module__ == errors.__name__]
"""Another part may tell one of them in its own words, under the same code; that crosses nothing."""


def _made(kind: type[IntakeError]) -> IntakeError:
    words = kind.message + kind.hint
    return kind(detail="detail", **{name: value for name, value in _VALUES.items()
                                    if "{" + name in words})


@pytest.mark.parametrize("kind", KINDS)
def test_crosses_the_process_boundary(kind: type[IntakeError]) -> None:
    error = _made(kind)
    data = msgspec.msgpack.encode(to_failure(error))
    back = from_failure(msgspec.msgpack.decode(data, type=Failure))
    assert type(back) is kind
    assert back.problem() == error.problem()


@pytest.mark.parametrize("kind", KINDS)
def test_says_what_is_wrong_and_what_to_do(kind: type[IntakeError]) -> None:
    problem = _made(kind).problem()
    assert problem.code.startswith("intake.")
    assert problem.message.endswith(".")
    assert problem.hint.endswith(".")
    assert "\n" not in problem.line()
    assert "{" not in problem.line()


def test_codes_are_unique() -> None:
    codes = [kind.code for kind in KINDS]
    assert len(codes) == len(set(codes))


def test_an_unknown_failure_is_still_an_intake_error() -> None:
    assert type(from_failure(Failure("intake.new", {}, "d"))) is errors.IntakeError
