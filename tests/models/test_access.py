"""Who may fetch the model, and by which way: tokens, proxies, offline."""

from __future__ import annotations

from pathlib import Path

import pytest

from desktop import keyrings
from desktop.models import manifest
from desktop.models.download import Failed
from tests.models.conftest import Fetch, LogFile, MemoryKeyring
from tests.models.driving import is_whole
from tests.models.hub import Hub

TOKEN = "hf_verySecretToken0123456789"


def leaks(text: str) -> bool:
    return TOKEN in text or "signature=secret" in text


@pytest.mark.parametrize(("kind", "variable"), [
    ("huggingface", "HF_TOKEN"), ("modelscope", "MODELSCOPE_API_TOKEN")])
def test_the_token_opens_the_hub_and_goes_nowhere_else(
        kind: str, variable: str, hub: Hub, fetch: Fetch,
        log_file: LogFile) -> None:
    hub.token, hub.wrong = TOKEN, 1
    ran = fetch(kind, environment={variable: TOKEN})
    assert is_whole(ran.folder, hub)
    assert hub.of("cdn")
    for each in hub.of("cdn"):
        assert "authorization" not in each.headers
        assert "cookie" not in each.headers
    assert "fetched anew" in log_file.text, "nothing was logged"
    assert not leaks(log_file.text)
    assert not leaks((ran.folder / manifest.NAME).read_text("utf-8"))


def test_the_keyring_is_asked_only_when_the_hub_refuses(
        hub: Hub, fetch: Fetch, ring: MemoryKeyring, tmp_path: Path) -> None:
    ring.held[keyrings.HUBS, hub.address.removeprefix("http://")] = TOKEN
    fetch(folder=tmp_path / "one")
    assert ring.asked == 0
    hub.token, hub.requests = TOKEN, []
    fetch(folder=tmp_path / "two")
    assert ring.asked == 1
    assert all("authorization" not in each.headers for each in hub.of("cdn"))


def test_without_a_token_the_refusal_says_where_to_give_one(
        hub: Hub, fetch: Fetch, ring: MemoryKeyring) -> None:
    hub.token, ring.broken = TOKEN, True
    ran = fetch()
    assert ran.code == "model.access_denied"
    assert isinstance(ran.outcome, Failed)
    assert "HF_TOKEN" in ran.outcome.problem.hint


def test_a_wrong_token_is_refused_and_not_shown(
        hub: Hub, fetch: Fetch, log_file: LogFile) -> None:
    hub.token = "another"
    ran = fetch(environment={"HF_TOKEN": TOKEN})
    assert ran.code == "model.access_denied"
    assert not leaks(log_file.text + repr(ran.outcome))


# --- the way there
def test_a_proxy_is_used(hub: Hub, fetch: Fetch) -> None:
    ran = fetch(hub_address="http://mirror.invalid", proxy=hub.address)
    assert is_whole(ran.folder, hub)
    assert all(each.path.startswith("http://") for each in hub.requests)


def test_a_proxy_of_the_environment_is_used(
        hub: Hub, fetch: Fetch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", hub.address)
    assert is_whole(fetch(hub_address="http://mirror.invalid").folder, hub)


def test_a_proxy_that_is_none_is_said_without_its_password(
        fetch: Fetch, log_file: LogFile) -> None:
    ran = fetch(proxy="gopher://me:pass-word@host")
    assert ran.code == "model.bad_proxy"
    assert "pass-word" not in log_file.text + repr(ran.outcome)


def test_offline_asks_nobody(hub: Hub, fetch: Fetch) -> None:
    assert fetch(offline=True).code == "model.offline"
    assert fetch(environment={"HF_HUB_OFFLINE": "1"}).code == "model.offline"
    assert not hub.requests
