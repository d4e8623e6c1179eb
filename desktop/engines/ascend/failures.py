"""What can be wrong with the engine ``ascend`` besides what can be with ``vllm``."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping

from desktop.errors import VersoError
from desktop.i18n import N_, _


class NoPlatform(VersoError):
    """vLLM runs, but vllm-ascend has not taken it over."""

    code = "ascend.platform"
    message = N_("vLLM {vllm} does not compute on an NPU here (but: {platform}), though "
                 "vllm-ascend {ascend} is installed.")
    hint = N_("vLLM loads vllm-ascend as a plugin: see that VLLM_PLUGINS is not set, or names "
              "“ascend” too; else install vllm-ascend anew. The log (View › Log) says why vLLM "
              "did not take it.")


class NoLibrary(VersoError):
    """torch-npu or vllm-ascend needs a library that the loader does not find."""

    code = "ascend.library"
    message = N_("The library {library}, which vllm-ascend needs, is not found. Looked in: "
                 "{looked}.")
    hint = N_("Install what brings it – the driver, CANN's toolkit, or NNAL for libatb.so – or in "
              "a container mount it; `verso doctor --engine ascend` says which is missing.")


class CannotLoad(VersoError):
    """vLLM with vllm-ascend cannot be imported, for a reason of its own."""

    code = "ascend.import"
    message = N_("vLLM cannot be loaded with vllm-ascend: {reason}")
    hint = N_("vllm-ascend, vLLM, torch-npu and CANN must go together (docs/ascend.md): `verso "
              "doctor --engine ascend` compares them.")


_LIBRARY = re.compile(r"\b(lib[\w.+-]+?\.so(?:\.\d+)*)\b: cannot open shared object file")


def unloadable(error: BaseException, environ: Mapping[str, str]) -> VersoError:
    """ERROR, raised while vLLM or vllm-ascend was imported, with its way out."""
    said = [f"{type(each).__name__}: {each}" for each in _chain(error)]
    detail = "\n".join(said)
    found = _LIBRARY.search(detail)
    if found is not None:
        folders = [part for part in environ.get("LD_LIBRARY_PATH", "").split(os.pathsep) if part]
        return NoLibrary(library=found[1], looked=", ".join(folders) or _("nowhere else than in "
                         "the system's folders"), detail=detail)
    return CannotLoad(reason=said[0].splitlines()[0][:300], detail=detail)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
