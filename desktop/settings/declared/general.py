"""Settings that do not belong to one kind of engine, and those of the built-in one."""

from __future__ import annotations

from desktop.i18n import N_
from desktop.settings.declare import Applies, Section, Setting

EMBEDDED = frozenset({"embedded"})

GENERAL: tuple[Setting, ...] = (
    Setting(
        "engine", str, "embedded", N_("Engine"),
        N_("What reads the pages. The built-in engine needs no accelerator."),
        Section.RUN, Applies.ENGINE_RESTART, visible=True,
    ),
    Setting(
        "dpi", int, 144, N_("Resolution"),
        N_("Dots per inch at which PDF pages are drawn. Images keep their own pixels."),
        Section.RUN, Applies.NEXT_PAGE, minimum=36, maximum=600, step=12, unit="dpi",
        visible=True,
    ),
    Setting(
        "text_layer", str, "auto", N_("Text layer"),
        N_("Use the words a digital page carries: where they agree with a sample of recognised "
           "lines, never, or always."),
        Section.RUN, Applies.NEXT_PAGE,
        choices={"auto": N_("Where it agrees"), "never": N_("Never"), "always": N_("Always")},
        visible=True, engines=EMBEDDED,
    ),
    Setting(
        "orientation", bool, True, N_("Turn pages upright"),
        N_("Find pages that were scanned sideways or upside down and turn them."),
        Section.RUN, Applies.NEXT_PAGE, visible=True, engines=EMBEDDED,
    ),
    Setting(
        "concurrency", int, 0, N_("Pages in flight"),
        N_("How many pages are read at once; 0 lets the engine choose. An engine that runs on this "
           "machine with vLLM is started again for more than 100."),
        Section.RUN, Applies.NOW, minimum=0, maximum=256, step=1, visible=True,
        shapes_result=False, at_start_above=100, at_start_of=frozenset({"vllm", "ascend"}),
    ),
    Setting(
        "skip_blank", bool, True, N_("Skip blank pages"),
        N_("Find empty pages before the engine spends time on them."),
        Section.RUN, Applies.NEXT_PAGE, visible=EMBEDDED,
    ),
    Setting(
        "furniture", bool, False, N_("Keep headers and footers"),
        N_("Write running headers, footers and page numbers into the Markdown."),
        Section.OUTPUT, Applies.NOW, visible=EMBEDDED, shapes_result=False,
    ),
    Setting(
        "page_separator", str, "none", N_("Between pages"),
        N_("What stands between two pages in one Markdown file."),
        Section.OUTPUT, Applies.NOW,
        choices={"none": N_("Blank line"), "rule": N_("Horizontal rule"),
                 "heading": N_("Page heading")},
        shapes_result=False,
    ),
    Setting(
        "file_per_page", bool, False, N_("One file a page"),
        N_("Write one Markdown file for each page instead of one for the document."),
        Section.OUTPUT, Applies.NOW, shapes_result=False,
    ),
    Setting(
        "max_megapixels", int, 24, N_("Largest page"),
        N_("A page that would be larger is drawn at a lower resolution."),
        Section.INTAKE, Applies.NEXT_PAGE, minimum=1, maximum=200, step=1, unit="megapixels",
    ),
    Setting(
        "page_seconds", int, 60, N_("Time to draw a page"),
        N_("A page that takes longer to draw is given up; the others go on."),
        Section.INTAKE, Applies.NEXT_PAGE, minimum=1, maximum=3600, step=1, unit="s",
        shapes_result=False,
    ),
    Setting(
        "page_memory", int, 2048, N_("Memory to draw a page"),
        N_("A page that takes more to draw is given up; the others go on."),
        Section.INTAKE, Applies.ENGINE_RESTART, minimum=256, maximum=65536, step=256,
        unit="MB", shapes_result=False,
    ),
    Setting(
        "threads", int, 0, N_("Processor threads"),
        N_("How many pages the built-in engine reads side by side; 0 uses every core."),
        Section.ENGINE, Applies.ENGINE_RESTART, minimum=0, maximum=256, step=1,
        engines=EMBEDDED, shapes_result=False,
    ),
    Setting(
        "ready_seconds", int, 600, N_("Engine start limit"),
        N_("How long an engine may take to get ready before Verso gives up on it."),
        Section.ENGINE, Applies.ENGINE_RESTART, minimum=5, maximum=7200, step=5, unit="s",
        shapes_result=False,
    ),
    Setting(
        "stall_seconds", int, 300, N_("Silence limit"),
        N_("When an engine says nothing about a page it reads for this long, the engine is "
           "started anew and the page is read again; after three times it is given up."),
        Section.ENGINE, Applies.NOW, minimum=1, maximum=86400, step=10, unit="s",
        shapes_result=False,
    ),
    Setting(
        "language", str, "en", N_("Language"),
        N_("The language of the window."),
        Section.APPEARANCE, Applies.NOW, choices={"en": "English"},
        panel=False, shapes_result=False,
    ),
    Setting(
        "theme", str, "system", N_("Appearance"),
        N_("Light, dark, or what the system uses."),
        Section.APPEARANCE, Applies.NOW,
        choices={"system": N_("System"), "light": N_("Light"), "dark": N_("Dark")},
        panel=False, shapes_result=False,
    ),
)
