"""Certificates are verified, and an authority of one's own can be trusted."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from desktop.engines.remote import probe
from tests.engines.remote.driving import run
from tests.engines.remote.fake_server import FakeServer


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
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return serve(tls=context)


def test_an_unknown_authority_is_not_trusted(secure: FakeServer) -> None:
    report = run(probe.probe(secure.url))
    assert report.problem is not None
    assert report.problem.code == "remote.certificate"
    assert "self-signed" in report.problem.message
    assert "SSL_CERT_FILE" in report.problem.hint
    assert secure.headers == [], "nothing was sent, no key above all"


def test_one_that_is_named_is(secure: FakeServer, certificate: Path,
                              monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    assert run(probe.probe(secure.url)).good


def test_the_wrong_name_is_not_trusted(secure: FakeServer, certificate: Path,
                                       monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    report = run(probe.probe(secure.url.replace("127.0.0.1", "localhost")))
    assert report.problem is not None
    assert report.problem.code == "remote.certificate"


def test_http_at_an_https_port(server: FakeServer) -> None:
    report = run(probe.probe(server.url.replace("http:", "https:")))
    assert report.problem is not None
    assert report.problem.code == "remote.certificate"
    assert "TLS" in report.problem.message
