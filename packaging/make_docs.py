"""Writes ``docs/settings.md`` from the declared settings: ``python packaging/make_docs.py``.

A test fails when the file is not what this makes.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # also where Verso is not installed

from desktop.engines.registry import ENGINES  # noqa: E402
from desktop.settings import SETTINGS, Applies, Section, Setting  # noqa: E402

HEAD = """\
# Settings

*Made from `desktop/settings/catalog.py` by `packaging/make_docs.py`; do not edit.*

Every setting can be changed in the window – in the run settings beside the result, or in the
preferences (Ctrl+,) –, given to `verso convert` as a flag for one run, or written into the
settings file, which keeps only what differs from the defaults. `verso settings` prints the list
with the values in force and the file's place.
"""

TITLES = {
    Section.RUN: "Run",
    Section.OUTPUT: "Output",
    Section.INTAKE: "Opening documents",
    Section.ENGINE: "Engine",
    Section.APPEARANCE: "Appearance",
}

EFFECT = {
    Applies.NOW: "at once",
    Applies.NEXT_PAGE: "with the next page",
    Applies.ENGINE_RESTART: "when the engine is started again",
}


def row(setting: Setting) -> str:
    """One line of a section's table."""
    choices = ["on", "off"] if setting.kind is bool else list(setting.choices)
    values = ", ".join(f"`{choice}`" for choice in choices) or setting.allowed()
    if setting.key == "engine":
        values = ", ".join(f"`{engine.name}`" for engine in ENGINES if not engine.hidden)
    default = setting.default
    if setting.kind is bool:
        default = "on" if default else "off"
    offered = [engine.name for engine in ENGINES if not engine.hidden]
    cells = [
        " ".join([f"**{setting.title}**: {setting.help}", *(
            f"With {engine}: {help_}" for engine, help_ in setting.helps.items()
            if engine in offered)]),
        f"`{setting.flag}`",
        values,
        f"`{default}`" if default != "" else "none",
        EFFECT[setting.applies],
        "all" if not setting.engines else
        ", ".join(sorted(setting.engines.intersection(offered))) or "none of this version",
    ]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def settings_page() -> str:
    """The whole page as Markdown."""
    parts = [HEAD]
    for section, title in TITLES.items():
        parts.append(f"## {title}\n")
        parts.append("| setting | flag | values | default | takes effect | engines |")
        parts.append("|---|---|---|---|---|---|")
        parts += [row(setting) for setting in SETTINGS if setting.section is section]
        parts.append("")
    return "\n".join(parts).rstrip() + "\n"


if __name__ == "__main__":
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT
    (root / "docs").mkdir(exist_ok=True)
    (root / "docs" / "settings.md").write_text(settings_page(), "utf-8")
