"""Where keys are, and that they do not get out."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import keyring
import keyring.backends.fail
import keyring.errors
import pytest

from desktop import keyrings
from desktop.engines.remote import keys
from tests.engines.remote.conftest import MemoryKeyring

URL = "http://gpu1:8000/v1"
SECRET = 'sk-verso/"0123456789+abcdef'


def test_a_key_is_kept_in_the_keyring_for_one_server(ring: MemoryKeyring) -> None:
    keys.store(URL, " one\n")
    assert ring.held == {(keyrings.SERVERS, URL): "one"}
    assert keys.lookup(URL).headers() == {"Authorization": "Bearer one"}
    assert keys.lookup(URL).source == "keyring"
    assert not keys.lookup("http://gpu2:8000/v1")
    assert keys.delete(URL)
    assert not keys.delete(URL)
    assert keys.lookup(URL).headers() == {}


def test_the_environment_goes_before_the_keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    keys.store(URL, "one")
    monkeypatch.setenv(keys.VARIABLE, "two\n")
    assert keys.lookup(URL).headers() == {"Authorization": "Bearer two"}
    assert keys.lookup(URL).source == "environment"


@pytest.mark.parametrize("value", ["two words", "brök", "line\nbreak", ""])
def test_what_no_header_can_carry_is_refused_unseen(
        value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(keys.BadKey) as caught:
        keys.store(URL, value)
    assert not value or value not in str(caught.value)
    if value:
        monkeypatch.setenv(keys.VARIABLE, value)
        with pytest.raises(keys.BadKey) as caught:
            keys.lookup(URL)
        assert value not in str(caught.value)


def test_no_keyring_is_no_key_until_one_is_to_be_kept() -> None:
    keyring.set_keyring(keyring.backends.fail.Keyring())
    assert not keys.lookup(URL)
    with pytest.raises(keys.NoKeyring, match="there is none") as caught:
        keys.store(URL, "one")
    assert "VERSO_API_KEY" in str(caught.value)


@pytest.mark.parametrize("ask", [
    lambda: keys.store(URL, "one"), lambda: keys.delete(URL)])
def test_what_the_keyring_does_not_do_is_said(ask: Callable[[], object]) -> None:
    class Locked(MemoryKeyring):
        def get_password(self, service: str, username: str) -> str | None:
            raise keyring.errors.KeyringLocked("hidden")

        def set_password(self, service: str, username: str, password: str) -> None:
            raise keyring.errors.KeyringLocked("hidden")

    keyring.set_keyring(Locked())
    with pytest.raises(keys.NoKeyring, match="it is locked") as caught:
        ask()
    assert "hidden" not in repr(caught.value.problem())


def test_a_key_does_not_show_itself() -> None:
    key = keys.Key(SECRET, "keyring")
    assert SECRET not in f"{key!r} {key} {vars(key).keys()}"


@pytest.mark.parametrize("form", [
    lambda s: s, lambda s: f"Bearer {s}", json.dumps, repr, lambda s: s.replace("/", "%2F"),
    lambda s: base64.b64encode(s.encode()).decode(),
    lambda s: base64.b64encode(f"Bearer {s}".encode()).decode(),
    lambda s: s[:20], lambda s: s[:10] + "…",
])
def test_no_form_of_a_key_gets_through(form: Any) -> None:
    said = keys.Key(SECRET).redact(f"refused: {form(SECRET)} is wrong")
    assert said.startswith("refused: ")
    assert said.endswith(" is wrong")
    for length in range(9, len(SECRET)):
        assert SECRET[:length] not in said
        assert base64.b64encode(SECRET.encode()).decode() not in said


@pytest.mark.parametrize("secret", ["abcd-efgh", "Q"])
def test_short_keys_and_cut_ends_go_too(secret: str) -> None:
    assert secret not in keys.Key(secret).redact(f"<{secret}>")
    if len(secret) > 5:
        assert keys.Key(secret).redact("it was " + secret[:6]) == "it was [key]"
