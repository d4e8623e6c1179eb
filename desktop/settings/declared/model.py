"""Settings of every engine that runs DeepSeek-OCR-2: what is asked of the model."""

from __future__ import annotations

from desktop.i18n import N_
from desktop.settings.declare import Applies, Section, Setting

_ENGINES = frozenset({"vllm", "remote", "ascend", "ascend-legacy"})
_TRIED = _ENGINES | {"scripted"}

MODEL: tuple[Setting, ...] = (
    Setting(
        "prompt", str, "markdown", N_("Task"),
        N_("What the model is asked to do with a page. Extra words in a prompt break "
           "recognition: these are the model's own."),
        Section.RUN, Applies.NEXT_PAGE,
        choices={"markdown": N_("Document to Markdown"), "free": N_("Plain text"),
                 "ocr": N_("Lines with boxes"), "figure": N_("Parse the figure"),
                 "describe": N_("Describe the image"), "locate": N_("Locate a text"),
                 "custom": N_("Custom prompt")},
        visible=True, engines=_ENGINES,
    ),
    Setting(
        "custom_prompt", str, "", N_("Custom prompt"),
        N_("The prompt of the task “Custom prompt”, or the text to look for with “Locate a "
           "text”."),
        Section.ENGINE, Applies.NEXT_PAGE, engines=_ENGINES,
    ),
    Setting(
        "crop", str, "auto", N_("Crop mode"),
        N_("Auto cuts a large page into tiles, which the model reads more exactly; off sends one "
           "small view that costs fewer visual tokens."),
        Section.RUN, Applies.NEXT_PAGE,
        choices={"auto": N_("Auto"), "off": N_("Off")}, visible=True,
        engines=_TRIED,
    ),
    Setting(
        "max_tokens", int, 8192, N_("Max tokens"),
        N_("The longest output of a page. It is lowered to what the model's context leaves "
           "beside the page."),
        Section.RUN, Applies.NEXT_PAGE, minimum=16, maximum=131072, step=256, visible=True,
        engines=_ENGINES,
    ),
    Setting(
        "loop_guard", bool, True, N_("Loop guard"),
        N_("Notice an output that repeats itself without end, stop it and read the page once "
           "more in another way."),
        Section.RUN, Applies.NEXT_PAGE, visible=True, engines=_TRIED,
    ),
    Setting(
        "slice_pages", bool, True, N_("Slice very long pages"),
        N_("Read a page that is many times as tall as wide (or as wide as tall) in overlapping "
           "slices; the model would see it squashed."),
        Section.ENGINE, Applies.NEXT_PAGE, engines=_TRIED,
    ),
    Setting(
        "ngram", str, "retry", N_("No-repeat n-gram"),
        N_("Forbid the model to repeat a long sequence of tokens: only for a page that has "
           "looped, for every page (a quarter slower), or never. To or from never, an engine on "
           "this machine is started again."),
        Section.ENGINE, Applies.NEXT_PAGE,
        choices={"retry": N_("Where a page looped"), "always": N_("Always"),
                 "off": N_("Never")}, engines=_ENGINES,
        # vLLM is told of the processor when it is started, or not at all.
        at_start=frozenset({"off"}), at_start_of=frozenset({"vllm", "ascend"}),
    ),
    Setting(
        "ngram_preset", str, "auto", N_("N-gram preset"),
        N_("Length and window of the forbidden sequence as published with the model; auto takes "
           "those for images or PDF pages."),
        Section.ENGINE, Applies.NEXT_PAGE,
        choices={"auto": N_("Auto"), "image": N_("Image (20 in 90)"), "pdf": N_("PDF (20 in 50)"),
                 "batch": N_("Batch (40 in 90)"), "custom": N_("Custom")}, engines=_ENGINES,
    ),
    Setting(
        "ngram_size", int, 20, N_("N-gram length"),
        N_("Tokens of the forbidden sequence, with the preset “Custom”."),
        Section.ENGINE, Applies.NEXT_PAGE, minimum=2, maximum=1000, step=1, engines=_ENGINES,
    ),
    Setting(
        "ngram_window", int, 90, N_("N-gram window"),
        N_("Tokens back that are searched for the sequence, with the preset “Custom”."),
        Section.ENGINE, Applies.NEXT_PAGE, minimum=2, maximum=10000, step=1, engines=_ENGINES,
    ),
    Setting(
        "stop", str, "", N_("Stop strings"),
        N_("Texts at which the output ends, separated by vertical bars (|)."),
        Section.ENGINE, Applies.NEXT_PAGE, engines=_ENGINES,
    ),
)
