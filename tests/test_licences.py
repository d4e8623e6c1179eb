"""Every dependency and every shipped folder is listed in THIRD_PARTY.md with its licence."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

import pytest
import tomllib
from packaging.requirements import Requirement

from tests.support.data import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
TEXT = (ROOT / "THIRD_PARTY.md").read_text("utf-8")


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name.strip("` /")).lower()


def section(title: str) -> list[list[str]]:
    """Rows of the tables under a heading."""
    body = TEXT.split(f"## {title}\n", 1)[1].split("\n## ", 1)[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")]
            for line in body.splitlines() if line.startswith("|")]
    return [row for row in rows if not set("".join(row)) <= set("-") and row[0] not in
            ("package", "files")]


def names(rows: list[list[str]]) -> set[str]:
    return {normal(name) for row in rows for name in row[0].split(",")}


def closure(requirements: list[str]) -> set[str]:
    """Names of the packages an installation brings, as installed here."""
    found: set[str] = set()
    todo = list(requirements)
    while todo:
        requirement = Requirement(todo.pop())
        if requirement.marker and not requirement.marker.evaluate({"extra": ""}):
            continue
        name = normal(requirement.name)
        if name not in found:
            found.add(name)
            try:
                todo += requires(name) or []
            except PackageNotFoundError:
                pytest.fail(f"{name} is not installed")
    return found


def test_every_package_of_an_installation_is_listed() -> None:
    listed = names(section("Packages that Verso needs"))
    brought = closure(PROJECT["dependencies"])
    assert brought - listed == set(), "not listed"
    direct = {normal(Requirement(r).name) for r in PROJECT["dependencies"]}
    assert direct <= listed


def test_only_what_is_needed_is_listed_as_needed() -> None:
    body = TEXT.split("They bring these with them", 1)[0].split("## Packages that Verso needs")[1]
    listed = {normal(line.split("|")[1]) for line in body.splitlines()
              if line.startswith("| ") and not line.startswith("| package")}
    assert listed == {normal(Requirement(r).name) for r in PROJECT["dependencies"]}


def test_the_test_extra_is_listed() -> None:
    extra = {normal(Requirement(r).name) for r in PROJECT["optional-dependencies"]["test"]}
    assert names(section("Packages that the tests need")) == extra


def test_every_shipped_folder_is_listed() -> None:
    rows = section("Shipped with Verso")
    listed = {row[0].strip("`/").removeprefix("resources/") for row in rows}
    shipped = {p.name for p in (ROOT / "resources").iterdir() if any(p.rglob("*"))}
    assert shipped - listed == set(), "not listed"
    assert listed - shipped == set(), "listed but not there"


@pytest.mark.parametrize(("work", "licence", "part"), [
    ("SAM", "Apache-2.0", "prepare-npu"), ("DeepSeek-VL2", "MIT", "ascend-legacy"),
    ("vLLM", "Apache-2.0", "plugin")])
def test_the_works_that_the_recipe_names(work: str, licence: str, part: str) -> None:
    """With what of Verso they concern."""
    row, = [row for row in section("What Verso works with, and does not ship")
            if re.match(rf"\[{work}\]\(https://", row[0])]
    assert row[2].startswith(licence)
    assert part in row[1]
    assert row[3]


@pytest.mark.parametrize("title", ["Shipped with Verso", "Packages that Verso needs",
                                   "Packages that the tests need"])
def test_every_row_names_a_licence(title: str) -> None:
    for row in section(title):
        assert re.search(r"MIT|BSD|Apache|GPL|MPL|ISC|PSF|Verso's own", row[2]), row


@pytest.mark.parametrize("folder", ["katex", "icons", "models"])
def test_foreign_files_carry_their_licence(folder: str) -> None:
    text = (ROOT / "resources" / folder / "LICENSE").read_text("utf-8")
    assert re.search(r"MIT License|ISC License|Apache License", text)


def test_the_product_carries_its_own() -> None:
    assert PROJECT["license"] == "AGPL-3.0-or-later"
    text = (ROOT / "LICENSE").read_text("utf-8")
    assert "GNU AFFERO GENERAL PUBLIC LICENSE" in text
    assert "Version 3, 19 November 2007" in text
    assert "END OF TERMS AND CONDITIONS" in text
    for path in PROJECT["license-files"]:
        assert Path(ROOT / path).is_file()
