"""Servers, pages and a keyring of the tests' own."""

from __future__ import annotations

import datetime
import ipaddress
import logging
import ssl
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import keyring
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from keyring.backend import KeyringBackend
from PIL import Image

from desktop.engines.remote import keys, pool, testpage
from desktop.protocol.messages import SubmitPage
from tests.engines.remote.fake_server import FakeServer


class MemoryKeyring(KeyringBackend):
    """Forgets everything with the test."""

    priority = 1

    def __init__(self) -> None:
        self.held: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, username: str) -> str | None:
        return self.held.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.held[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        del self.held[service, username]


@pytest.fixture(autouse=True)
def ring(monkeypatch: pytest.MonkeyPatch) -> Iterator[MemoryKeyring]:
    """In place of the system's keyring; no key in the environment, and no proxy."""
    for name in (keys.VARIABLE, "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy",
                 "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    before, memory = keyring.get_keyring(), MemoryKeyring()
    keyring.set_keyring(memory)
    yield memory
    keyring.set_keyring(before)


@pytest.fixture
def serve() -> Iterator[Callable[..., FakeServer]]:
    """``serve(key=…)`` starts a server that ends with the test."""
    with ExitStack() as stack:
        yield lambda **values: stack.enter_context(FakeServer(**values))


@pytest.fixture
def server(serve: Callable[..., FakeServer]) -> FakeServer:
    """One that is well."""
    return serve()


@pytest.fixture
def steady(server: FakeServer) -> FakeServer:
    """One whose text comes in pieces even for who is too busy to listen all the time."""
    server.pause = 0.01
    return server


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """Key and certificate of 127.0.0.1 in one file, signed by itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "an authority of one's own")])
    now = datetime.datetime.now(datetime.timezone.utc)
    signed = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name)
        .public_key(key.public_key()).serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(
            [x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256()))
    path = tmp_path / "server.pem"
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
                          serialization.NoEncryption())
        + signed.public_bytes(serialization.Encoding.PEM))
    return path


@pytest.fixture
def secure(certificate: Path, serve: Callable[..., FakeServer]) -> FakeServer:
    """One that speaks TLS, with a certificate that nobody knows."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return serve(tls=context)


@pytest.fixture
def a_page(tmp_path: Path) -> Callable[..., SubmitPage]:
    """``a_page(size, **settings)``: a page's bitmap and values."""
    count = 0

    def make(size: tuple[int, int] = (540, 764), priority: int = 1, **settings: Any) -> SubmitPage:
        nonlocal count
        count += 1
        path = tmp_path / f"{size[0]}x{size[1]}.ppm"
        if not path.exists():
            picture = testpage.draw(size) if min(size) > 100 else Image.new("RGB", size, "white")
            picture.save(path)
        return SubmitPage(f"p{count}", str(path), *size, settings=settings, priority=priority)

    return make


@pytest.fixture
def short_rests(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that failed is looked at again soon."""
    monkeypatch.setattr(pool, "FIRST_REST", 0.02)
    monkeypatch.setattr(pool, "LONGEST_REST", 0.2)


@pytest.fixture
def all_logged(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """Everything that is logged, details too."""
    caplog.set_level(logging.DEBUG)
    return caplog
