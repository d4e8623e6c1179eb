"""Settings of getting the model."""

from __future__ import annotations

from desktop.i18n import N_
from desktop.settings.declare import Applies, Section, Setting

_LOCAL = frozenset({"vllm", "ascend", "ascend-legacy"})

HUB: tuple[Setting, ...] = (
    Setting(
        "hub", str, "huggingface", N_("Model source"),
        N_("Where the model is downloaded from."),
        Section.ENGINE, Applies.NOW,
        choices={"huggingface": "Hugging Face", "modelscope": "ModelScope"}, engines=_LOCAL,
        shapes_result=False,
    ),
    Setting(
        "hub_address", str, "", N_("Mirror"),
        N_("Address of a mirror of the model source; empty: HF_ENDPOINT where it is set, else "
           "the source itself."),
        Section.ENGINE, Applies.NOW, engines=_LOCAL, shapes_result=False,
    ),
    Setting(
        "proxy", str, "", N_("Proxy"),
        N_("Proxy for downloads, such as http://proxy:3128; empty: what the environment says."),
        Section.ENGINE, Applies.NOW, engines=_LOCAL, shapes_result=False, secret=True,
    ),
    Setting(
        "offline", bool, False, N_("Offline"),
        N_("Never ask the network for the model."),
        Section.ENGINE, Applies.NOW, engines=_LOCAL, shapes_result=False,
    ),
)
