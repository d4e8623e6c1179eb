"""What can be wrong with the engine ``ascend`` besides what can be with ``vllm``."""

from __future__ import annotations

from desktop.errors import VersoError
from desktop.i18n import N_


class NoPlatform(VersoError):
    """vLLM runs, but vllm-ascend has not taken it over."""

    code = "ascend.platform"
    message = N_("vLLM {vllm} does not compute on an NPU here (but: {platform}), though "
                 "vllm-ascend {ascend} is installed.")
    hint = N_("Take the variable VLLM_PLUGINS out, or let it name “ascend” too; the log (View › "
              "Log) says why vLLM did not take it. `verso doctor --engine ascend` examines the "
              "rest.")
