"""Every error has a code of its own: it is what people search for, and what tells one from another
where only the code is kept."""

from __future__ import annotations

import ast
import re
from collections import defaultdict

import pytest

from desktop.errors import Problem
from tests.support.data import ROOT


def _codes() -> dict[str, list[str]]:
    """Each code that a class of the product gives itself, and those classes. Read from the
    sources: some modules cannot be imported everywhere."""
    found = defaultdict(list)
    for path in sorted((ROOT / "desktop").rglob("*.py")):
        for kind in ast.walk(ast.parse(path.read_bytes(), str(path))):
            if not isinstance(kind, ast.ClassDef):
                continue
            for line in kind.body:
                target, value = None, None
                if isinstance(line, ast.Assign):
                    target, value = line.targets[0], line.value
                elif isinstance(line, ast.AnnAssign):
                    target, value = line.target, line.value
                if (isinstance(target, ast.Name) and target.id == "code"
                        and isinstance(value, ast.Constant) and isinstance(value.value, str)):
                    found[value.value].append(f"{path.relative_to(ROOT)}:{kind.name}")
    return found


def test_no_two_errors_have_one_code() -> None:
    found = _codes()
    assert len(found) > 200
    assert {code: kinds for code, kinds in found.items() if len(kinds) > 1} == {}


def test_codes_are_dotted_and_lower_case() -> None:
    """Those of warnings that stand alone beside the model's code (the MoE patch) have no dot."""
    wrong = [(code, kinds) for code, kinds in _codes().items()
             if code != "internal" and not re.fullmatch(r"[a-z][a-z0-9_]*(\.[a-z0-9_-]+)+", code)
             and "desktop/engines/ascend/moe/" not in kinds[0]]
    assert wrong == []


@pytest.mark.parametrize(("message", "line"), [
    ("It is wrong.", "It is wrong. Mend it."),
    ("It is wrong: No module named 'x'", "It is wrong: No module named 'x'. Mend it."),
    ("It is wrong (“x”)", "It is wrong (“x”). Mend it."), ("Is it wrong?", "Is it wrong? Mend it."),
    ("错了。", "错了。 Mend it."), ("", "Mend it.")])
def test_message_and_hint_are_two_sentences(message: str, line: str) -> None:
    assert Problem("a.b", message, "Mend it.").line() == line
    assert Problem("a.b", message, "").line() == message
