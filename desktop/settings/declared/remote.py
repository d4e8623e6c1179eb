"""Settings of the engine that asks vLLM servers elsewhere."""

from __future__ import annotations

from desktop.i18n import N_
from desktop.settings.declare import Applies, Section, Setting

_REMOTE = frozenset({"remote"})

REMOTE: tuple[Setting, ...] = (
    Setting(
        "servers", str, "", N_("Servers"),
        N_("Base addresses of the servers, such as http://gpu1:8000/v1, separated by spaces. A "
           "key is kept in the system's keyring or in the variable VERSO_API_KEY, never here."),
        Section.RUN, Applies.ENGINE_RESTART, visible=True, engines=_REMOTE, shapes_result=False,
        check=lambda value: not set("@?#") & set(str(value)),
        words=N_("addresses with no name, key or question in them"),
    ),
    Setting(
        "remote_model", str, "", N_("Model on the server"),
        N_("The name the server knows the model by; empty: the first that it lists."),
        Section.ENGINE, Applies.ENGINE_RESTART, engines=_REMOTE,
    ),
    Setting(
        "server_silence", int, 120, N_("Server silence limit"),
        N_("When a server sends nothing for this long, the page is read again, by another "
           "server where there is one."),
        Section.ENGINE, Applies.NEXT_PAGE, minimum=1, maximum=3600, step=5, unit="s",
        engines=_REMOTE, shapes_result=False,
    ),
    Setting(
        "upload_format", str, "auto", N_("Upload format"),
        N_("How page images are sent: PNG is exact, JPEG is smaller; auto sends PNG unless it "
           "would be larger than the limit."),
        Section.ENGINE, Applies.NEXT_PAGE,
        choices={"auto": N_("Auto"), "png": "PNG", "jpeg": "JPEG"}, engines=_REMOTE,
    ),
    Setting(
        "upload_limit", int, 8, N_("Upload limit"),
        N_("Largest page image that is sent."),
        Section.ENGINE, Applies.NEXT_PAGE, minimum=1, maximum=64, step=1, unit="MB",
        engines=_REMOTE,
    ),
)
