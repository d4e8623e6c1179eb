"""The system's keyring: asked with patience, and never quoted."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import keyring
import keyring.backends.fail
import pytest

from desktop import keyrings
from tests.engines.remote.conftest import MemoryKeyring
from tests.support.processes import until


@pytest.fixture(autouse=True)
def ring() -> Iterator[MemoryKeyring]:
    before, memory = keyring.get_keyring(), MemoryKeyring()
    keyring.set_keyring(memory)
    yield memory
    keyring.set_keyring(before)


def test_secrets_are_kept_by_service_and_name(ring: MemoryKeyring) -> None:
    keyrings.put(keyrings.SERVERS, "one", "abc")
    assert ring.held == {(keyrings.SERVERS, "one"): "abc"}
    assert keyrings.get(keyrings.SERVERS, "one") == "abc"
    assert keyrings.get(keyrings.HUBS, "one") == ""
    assert keyrings.forget(keyrings.SERVERS, "one")
    assert not keyrings.forget(keyrings.SERVERS, "one")
    assert ring.held == {}


def test_one_that_hangs_is_waited_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    end, asked = threading.Event(), []

    class Hanging(MemoryKeyring):
        def get_password(self, service: str, username: str) -> str | None:
            asked.append(username)
            end.wait(60)
            return "late"

    keyring.set_keyring(Hanging())
    monkeypatch.setattr(keyrings, "PATIENCE", 0.05)
    try:
        for name in ("one", "two"):
            with pytest.raises(keyrings.NoAnswer, match="it does not answer"):
                keyrings.get(keyrings.SERVERS, name)
        until(lambda: asked)  # its thread may come to it only after nobody waits any more
        assert asked == ["one"]
    finally:
        end.set()
    monkeypatch.setattr(keyrings, "PATIENCE", 120.0)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:  # Once it has answered it is asked again.
        try:
            assert keyrings.get(keyrings.SERVERS, "three") == "late"
        except keyrings.NoAnswer:
            time.sleep(0.01)
        else:
            return
    pytest.fail("it was never asked again")


def test_its_own_words_are_not_passed_on() -> None:
    class Talking(MemoryKeyring):
        def set_password(self, service: str, username: str, password: str) -> None:
            raise RuntimeError(f"cannot keep {password}")

    keyring.set_keyring(Talking())
    with pytest.raises(keyrings.NoAnswer) as caught:
        keyrings.put(keyrings.SERVERS, "one", "hidden-value")
    assert caught.value.reason == "RuntimeError"
    assert "hidden-value" not in repr(caught.value)


def test_none_at_all() -> None:
    keyring.set_keyring(keyring.backends.fail.Keyring())
    with pytest.raises(keyrings.NoAnswer, match="there is none"):
        keyrings.get(keyrings.SERVERS, "one")


@pytest.mark.parametrize(("secret", "can"), [
    ("hf_abc", True), ("sk-/+=~!", True), ("", False), ("two words", False), ("brök", False),
    ("line\nbreak", False), ("end\n", False)])
def test_what_a_header_can_carry(secret: str, can: bool) -> None:
    assert keyrings.sendable(secret) is can
