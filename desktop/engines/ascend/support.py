"""Which versions of the Ascend stack go together, and which of them read pages: one table.

The pairs are vllm-ascend's own (docs/source/community/versioning_policy.md at 182b75e, and the
same page, setup.py and requirements.txt at the tags v0.8.5rc1 … v0.25.1rc1). Which of them has
DeepSeek-OCR-2 is vLLM's matter (the model is part of it from 0.16 on). From 0.18 on vllm-ascend
replaces its visual decoder with a class that asks transformers' layers for ``attention_type``
(0.18: ``patch/worker/patch_deepencoder2.py``; later ``ops/qwen2_decoder.py``), which they have in
transformers 4.57 and 5.0 and not from 5.4 on; releases after 0.18 are installed with 5.5 and
later. Our vLLM plugin gives it to them, and 5.5's tokenizer the right class.

Nothing is imported of what is judged. Python 3.9, for the older stack.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Optional

from desktop.i18n import N_, _

OLDEST = "0.8.5rc1"
"""What the CANN recipe (Atlas A2) was made for."""
BEST = "0.18.0"
"""The newest release that reads pages without a repair."""
DISK_BYTES = 50 * 10**9
MEMORY_BYTES = 32 * 10**9
"""Hardware the recipe asks for: an Atlas 800I/T A2, 50 GB of disk, 32 GB of memory."""
SHARED_MEMORY_BYTES = 1 << 30
"""Below that, processes of one engine run out of it; docker gives 64 MB unless told."""


class Model(Enum):
    """Where the model's code comes from."""

    OFFICIAL = "official"
    """The official code, converted (``ascend-legacy``)."""
    NONE = "none"
    """vLLM has no such model yet, and the official code does not fit any more."""
    VLLM = "vllm"
    """vLLM's own (``ascend``)."""
    REPAIRED = "repaired"
    """vLLM's own, and vllm-ascend's layer for it has to be repaired."""


class Level(Enum):
    """How a row is judged."""

    GOOD = "good"
    WARNING = "warning"
    """It may work; not the pair that was released."""
    PROBLEM = "problem"


@dataclass(frozen=True)
class Row:
    """One release of vllm-ascend and what it was released with."""

    ascend: str
    vllm: str
    python: tuple[tuple[int, int], tuple[int, int]]
    """The first that fits and the first that does not."""
    cann: str
    torch: str
    torch_npu: str
    model: Model
    cann_exact: bool = True
    """Whether the release asks for this CANN and no newer one."""

    @property
    def moe_patch(self) -> bool:
        """Whether ``fused_moe`` has to be replaced for the model's experts."""
        return _release(self.ascend) <= (0, 10, 0)

    @property
    def python_words(self) -> str:
        """Such as ``3.9 – 3.11``."""
        (major, first), (_major, after) = self.python
        return f"{major}.{first} – {major}.{after - 1}"


_OLD = ((3, 9), (3, 12))
_MID = ((3, 10), (3, 12))
_NEW = ((3, 10), (3, 13))

ROWS: tuple[Row, ...] = (
    Row("0.8.5rc1", "0.8.5.post1", _OLD, "8.1.RC1", "2.5.1", "2.5.1", Model.OFFICIAL, False),
    Row("0.9.0rc1", "0.9.0", _OLD, "8.1.RC1", "2.5.1", "2.5.1", Model.NONE),
    Row("0.9.0rc2", "0.9.0", _OLD, "8.1.RC1", "2.5.1", "2.5.1", Model.NONE),
    Row("0.9.1rc1", "0.9.1", _OLD, "8.1.RC1", "2.5.1", "2.5.1.post1.dev20250528", Model.NONE),
    Row("0.9.1rc2", "0.9.1", _OLD, "8.2.RC1", "2.5.1", "2.5.1.post1", Model.NONE),
    Row("0.9.1rc3", "0.9.1", _OLD, "8.2.RC1", "2.5.1", "2.5.1.post1", Model.NONE),
    Row("0.9.1", "0.9.1", _OLD, "8.2.RC1", "2.5.1", "2.5.1.post1", Model.NONE),
    Row("0.9.2rc1", "0.9.2", _OLD, "8.1.RC1", "2.5.1", "2.5.1.post1.dev20250619", Model.NONE),
    Row("0.10.0rc1", "0.10.0", _OLD, "8.2.RC1", "2.7.1", "2.7.1.dev20250724", Model.NONE),
    Row("0.10.1rc1", "0.10.1", _OLD, "8.2.RC1", "2.7.1", "2.7.1.dev20250724", Model.NONE),
    Row("0.10.2rc1", "0.10.2", _OLD, "8.2.RC1", "2.7.1", "2.7.1.dev20250724", Model.NONE),
    Row("0.11.0rc0", "0.11.0rc3", _OLD, "8.2.RC1", "2.7.1", "2.7.1.dev20250724", Model.NONE),
    Row("0.11.0rc1", "0.11.0", _OLD, "8.3.RC1", "2.7.1", "2.7.1", Model.NONE),
    Row("0.11.0rc2", "0.11.0", _OLD, "8.3.RC2", "2.7.1", "2.7.1", Model.NONE),
    Row("0.11.0rc3", "0.11.0", _OLD, "8.3.RC2", "2.7.1", "2.7.1.post1", Model.NONE),
    Row("0.11.0", "0.11.0", _OLD, "8.3.RC2", "2.7.1", "2.7.1.post1", Model.NONE),
    Row("0.12.0rc1", "0.12.0", _MID, "8.3.RC2", "2.8.0", "2.8.0", Model.NONE),
    Row("0.13.0rc1", "0.13.0", _MID, "8.3.RC2", "2.8.0", "2.8.0", Model.NONE),
    Row("0.13.0rc2", "0.13.0", _MID, "8.5.0", "2.8.0", "2.8.0.post1", Model.NONE),
    Row("0.13.0rc3", "0.13.0", _MID, "8.5.1", "2.8.0", "2.8.0.post2", Model.NONE),
    Row("0.13.0", "0.13.0", _MID, "8.5.0", "2.8.0", "2.8.0.post2", Model.NONE),
    Row("0.14.0rc1", "0.14.1", _MID, "8.5.0", "2.9.0", "2.9.0", Model.NONE),
    Row("0.15.0rc1", "0.15.0", _MID, "8.5.0", "2.9.0", "2.9.0", Model.NONE),
    Row("0.16.0rc1", "0.16.0", _MID, "8.5.1", "2.9.0", "2.9.0", Model.VLLM),
    Row("0.17.0rc1", "0.17.0", _MID, "8.5.1", "2.9.0", "2.9.0", Model.VLLM),
    Row("0.18.0rc1", "0.18.0", _MID, "8.5.1", "2.9.0", "2.9.0", Model.VLLM),
    Row("0.18.0", "0.18.0", _MID, "8.5.1", "2.9.0", "2.9.0.post1", Model.VLLM),
    Row("0.19.1rc1", "0.19.1", _MID, "8.5.1", "2.9.0", "2.9.0", Model.REPAIRED),
    Row("0.20.2rc1", "0.20.2", _MID, "9.0.0", "2.10.0", "2.10.0", Model.REPAIRED),
    Row("0.21.0rc1", "0.21.0", _NEW, "9.0.0", "2.10.0", "2.10.0", Model.REPAIRED),
    Row("0.22.1rc1", "0.22.1", _NEW, "9.0.0", "2.10.0", "2.10.0", Model.REPAIRED),
    Row("0.23.0rc1", "0.23.0", _NEW, "9.0.1", "2.10.0", "2.10.0.post2", Model.REPAIRED),
    Row("0.23.0", "0.23.0", _NEW, "9.1.0", "2.10.0", "2.10.0.post4", Model.REPAIRED),
    Row("0.24.0rc1", "0.24.0", _NEW, "9.0.1", "2.10.0", "2.10.0.post2", Model.REPAIRED),
    Row("0.25.1rc1", "0.25.1", _NEW, "9.0.1", "2.10.0", "2.10.0.post2", Model.REPAIRED),
)


@dataclass(frozen=True)
class Installed:
    """What is there; empty: not at all, or not known."""

    ascend: str = ""
    vllm: str = ""
    python: str = ""
    cann: str = ""
    torch: str = ""
    torch_npu: str = ""
    transformers: str = ""
    driver: str = ""


@dataclass(frozen=True)
class Verdict:
    """One row of the comparison. ``wanted`` is empty where nothing is asked for."""

    what: str
    """A key of :data:`TITLES`."""
    found: str
    wanted: str
    level: Level
    why: str = ""
    """A sentence in the user's language; empty where all is well."""
    fix: str = ""


TITLES: Mapping[str, str] = {
    "python": "Python", "vllm-ascend": "vllm-ascend", "vllm": "vLLM", "torch": "torch",
    "torch-npu": "torch-npu", "transformers": "transformers", "cann": "CANN",
    "driver": N_("driver"), "model": N_("model code"), "moe": N_("MoE patch"),
}


def row(version: str) -> Optional[Row]:
    """The row of vllm-ascend VERSION: this release, else that of the same number (a later
    post-release or a build of one's own); None where the table has none."""
    plain = version.partition("+")[0].strip().lower().lstrip("v")
    for each in ROWS:
        if each.ascend == plain:
            return each
    same = [each for each in ROWS if _release(each.ascend) == _release(plain)]
    return same[-1] if same and _release(plain) else None


def judge(found: Installed) -> tuple[Verdict, ...]:
    """FOUND against the table, a verdict a row; what is not known is not judged."""
    if not found.ascend:
        return _without(found)
    wanted = row(found.ascend)
    if wanted is None:
        return (_unknown(found), *(
            Verdict(what, version, "", Level.GOOD) for what, version in (
                ("vllm", found.vllm), ("python", found.python), ("torch", found.torch),
                ("torch-npu", found.torch_npu), ("transformers", found.transformers),
                ("cann", found.cann), ("driver", found.driver)) if version))
    verdicts = [
        Verdict("vllm-ascend", found.ascend, "", Level.GOOD),
        _model(wanted, found),
        _vllm(wanted, found.vllm),
        _python(wanted, found.python),
        _torch("torch", wanted.torch, found.torch, found.ascend),
        _torch("torch-npu", wanted.torch_npu, found.torch_npu, found.ascend),
        _pair(found),
        _transformers(wanted, found.transformers),
        _cann(wanted, found.cann),
        _moe(wanted),
        Verdict("driver", found.driver, "", Level.GOOD) if found.driver else None,
    ]
    return tuple(verdict for verdict in verdicts if verdict is not None)


# --- the rows


def _without(found: Installed) -> tuple[Verdict, ...]:
    """No vllm-ascend."""
    fix = _("Install vllm-ascend {best} with the vLLM, torch-npu and CANN that go with it, or use "
            "its container image (quay.io/ascend/vllm-ascend:v{best}).").format(best=BEST)
    missing = [name for name, version in (
        ("vllm-ascend", found.ascend), ("torch-npu", found.torch_npu)) if not version]
    verdicts = [Verdict(
        "vllm-ascend", "", BEST, Level.PROBLEM,
        _("The Python that runs the engine does not have {packages}.").format(
            packages=", ".join(missing)), fix)]
    if not found.torch_npu:
        verdicts.append(Verdict("torch-npu", "", "", Level.PROBLEM))  # said with the other
    verdicts += [Verdict(what, version, "", Level.GOOD) for what, version in (
        ("python", found.python), ("torch", found.torch), ("torch-npu", found.torch_npu),
        ("cann", found.cann), ("driver", found.driver)) if version]
    return tuple(verdicts)


def _unknown(found: Installed) -> Verdict:
    newest = ROWS[-1].ascend
    if _release(found.ascend) and _release(found.ascend) < _release(OLDEST):
        return Verdict("vllm-ascend", found.ascend, f"≥ {OLDEST}", Level.PROBLEM,
                       _("vllm-ascend {version} is older than anything that reads pages.").format(
                           version=found.ascend),
                       _("Install vllm-ascend {best}.").format(best=BEST))
    return Verdict("vllm-ascend", found.ascend, f"≤ {newest}", Level.WARNING,
                   _("vllm-ascend {version} is not in the table of versions that Verso knows; the "
                     "newest one there is {newest}.").format(version=found.ascend, newest=newest),
                   _("If it does not start, install vllm-ascend {best}.").format(best=BEST))


def _model(wanted: Row, found: Installed) -> Verdict:
    words = {Model.OFFICIAL: _("the official code, converted (engine ascend-legacy)"),
             Model.NONE: _("none"), Model.VLLM: _("vLLM's own"),
             Model.REPAIRED: _("vLLM's own, with a repair")}[wanted.model]
    if wanted.model is Model.NONE:
        return Verdict("model", words, "", Level.PROBLEM,
                       _("vllm-ascend {version} has no DeepSeek-OCR-2, and the model's official "
                         "code does not run on it.").format(version=found.ascend),
                       _("Install vllm-ascend {best}, or {oldest} with the converted official "
                         "code.").format(best=BEST, oldest=OLDEST))
    return Verdict("model", words, "", Level.GOOD)


def _vllm(wanted: Row, version: str) -> Verdict:
    fix = f"pip install vllm=={wanted.vllm}"
    if not version:
        return Verdict("vllm", "", wanted.vllm, Level.PROBLEM, _("vLLM is not installed."), fix)
    if _release(version)[:3] != _release(wanted.vllm)[:3]:  # 0.10.1.1 is 0.10.1 with a repair
        return Verdict("vllm", version, wanted.vllm, Level.PROBLEM,
                       _("vllm-ascend {ascend} replaces parts of vLLM {wanted} and of no "
                         "other.").format(ascend=wanted.ascend, wanted=wanted.vllm), fix)
    return Verdict("vllm", version, wanted.vllm, Level.GOOD)


def _python(wanted: Row, version: str) -> Optional[Verdict]:
    if not version:
        return None
    numbers = _release(version)[:2]
    if wanted.python[0] <= numbers < wanted.python[1]:
        return Verdict("python", version, wanted.python_words, Level.GOOD)
    return Verdict("python", version, wanted.python_words, Level.PROBLEM,
                   _("vllm-ascend {ascend} does not run on Python {version}.").format(
                       ascend=wanted.ascend, version=version),
                   _("Make an environment with Python {wanted} for the engine.").format(
                       wanted=wanted.python_words))


def _torch(what: str, wanted: str, version: str, ascend: str) -> Verdict:
    fix = f"pip install {what}=={wanted}"
    if not version:
        return Verdict(what, "", wanted, Level.PROBLEM,
                       _("{package} is not installed.").format(package=what), fix)
    if _release(version)[:2] != _release(wanted)[:2]:
        return Verdict(what, version, wanted, Level.PROBLEM,
                       _("{package} {version} does not go with vllm-ascend {ascend}.").format(
                           package=what, version=version, ascend=ascend), fix)
    if _release(version) != _release(wanted):
        return Verdict(what, version, wanted, Level.WARNING,
                       _("vllm-ascend {ascend} was released with {package} {wanted}.").format(
                           package=what, wanted=wanted, ascend=ascend), fix)
    return Verdict(what, version, wanted, Level.GOOD)


def _pair(found: Installed) -> Optional[Verdict]:
    """torch-npu is built for one torch. Where their own rows tell them apart it is said there."""
    if not found.torch or not found.torch_npu \
            or _release(found.torch) == _release(found.torch_npu) \
            or _release(found.torch)[:2] != _release(found.torch_npu)[:2]:
        return None
    numbers = ".".join(map(str, _release(found.torch_npu)[:3]))
    return Verdict("torch-npu", found.torch_npu, found.torch, Level.PROBLEM,
                   _("torch-npu {npu} was built for torch {numbers}, and torch {torch} is "
                     "installed.").format(npu=found.torch_npu, numbers=numbers, torch=found.torch),
                   f"pip install torch=={numbers}")


def _transformers(wanted: Row, version: str) -> Optional[Verdict]:
    if not version:
        return None
    release = _release(version)
    if wanted.model is Model.VLLM and release >= (5,):
        return Verdict("transformers", version, "< 5", Level.PROBLEM,
                       _("vllm-ascend {ascend} reads pages with transformers 4 only.").format(
                           ascend=wanted.ascend), 'pip install "transformers>=4.57.4,<5"')
    # What newer vllm-ascend lacks with transformers 5 our plugin repairs: nothing to be done.
    return Verdict("transformers", version, "", Level.GOOD)


def _cann(wanted: Row, version: str) -> Optional[Verdict]:
    if not version:
        return None
    relation = wanted.cann if wanted.cann_exact else f"≥ {wanted.cann}"
    have, need = cann_key(version), cann_key(wanted.cann)
    fix = _("Install CANN {wanted} (toolkit, kernels and NNAL of one version), or use the "
            "container image quay.io/ascend/vllm-ascend:v{ascend}.").format(
        wanted=wanted.cann, ascend=wanted.ascend)
    if not have or have == need or (have > need and not wanted.cann_exact):
        return Verdict("cann", version, relation, Level.GOOD)
    if have[:2] < need[:2]:
        return Verdict("cann", version, relation, Level.PROBLEM,
                       _("CANN {version} is older than what vllm-ascend {ascend} was built "
                         "for.").format(version=version, ascend=wanted.ascend), fix)
    return Verdict("cann", version, relation, Level.WARNING,
                   _("vllm-ascend {ascend} was released with CANN {wanted}.").format(
                       ascend=wanted.ascend, wanted=wanted.cann), fix)


def _moe(wanted: Row) -> Optional[Verdict]:
    if wanted.model is Model.NONE:
        return None
    return Verdict("moe", _("needed") if wanted.moe_patch else _("not needed"), "", Level.GOOD)


# --- versions


def cann_key(version: str) -> tuple[int, ...]:
    """CANN's numbers for comparing: ``8.2.RC1`` comes before ``8.2.0``; empty: no version."""
    found = re.match(r"(\d+)\.(\d+)\.(rc)?(\d+)", version.strip(), re.IGNORECASE)
    if found is None:
        return ()
    return (int(found[1]), int(found[2]), 0 if found[3] else 1, int(found[4]))


def _release(version: str) -> tuple[int, ...]:
    """The numbers of a version, without stage, post-release and build, zeros at the end cut."""
    found = re.match(r"v?(\d+(?:\.\d+)*)", version.strip(), re.IGNORECASE)
    if found is None:
        return ()
    numbers = [int(number) for number in found[1].split(".")]
    while len(numbers) < 3:
        numbers.append(0)
    return tuple(numbers)
