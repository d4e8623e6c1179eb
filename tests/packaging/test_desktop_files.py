"""The desktop entry, the AppStream data and what a wheel carries."""

from __future__ import annotations

import configparser
import re
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree

import pytest
import tomllib

import desktop
from tests.support.data import ROOT

ENTRY = ROOT / "packaging/verso.desktop"
METAINFO = ROOT / "packaging/verso.metainfo.xml"
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def entry() -> configparser.SectionProxy:
    parser = configparser.ConfigParser(interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(ENTRY, "utf-8")
    return parser["Desktop Entry"]


def test_the_entry_starts_the_installed_command_with_files() -> None:
    command, argument = entry()["Exec"].split()
    assert command in PYPROJECT["project"]["scripts"]
    assert argument == "%F"
    assert entry()["Icon"] == ENTRY.stem


def test_the_formats_a_person_expects_are_declared() -> None:
    types = entry()["MimeType"].strip(";").split(";")
    assert len(types) == len(set(types))
    assert {"application/pdf", "image/png", "image/jpeg", "image/tiff", "image/heic"} <= set(types)


def test_appstream_agrees_with_the_project() -> None:
    root = ElementTree.parse(METAINFO).getroot()
    assert root.findtext("project_license") == PYPROJECT["project"]["license"]
    assert root.findtext("launchable") == ENTRY.name
    assert root.findtext("id") == ENTRY.stem
    release = root.find("releases/release")
    assert release is not None
    assert release.get("version") == desktop.__version__
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", release.get("date") or "")


def test_a_wheel_puts_them_where_desktops_look() -> None:
    shared = PYPROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["shared-data"]
    assert set(shared.values()) == {
        f"share/applications/{ENTRY.name}", f"share/metainfo/{METAINFO.name}",
        f"share/icons/hicolor/scalable/apps/{ENTRY.stem}.svg"}
    for source in shared:
        assert (ROOT / source).is_file()


@pytest.mark.parametrize("command", [
    ["desktop-file-validate", str(ENTRY)],
    ["appstreamcli", "validate", "--no-net", "--override=cid-desktopapp-is-not-rdns=info",
     str(METAINFO)],
], ids=lambda c: c[0])
def test_the_desktops_own_checkers_agree(command: list[str]) -> None:
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
