"""Certificates are verified, and an authority of one's own can be trusted."""

from __future__ import annotations

from pathlib import Path

import pytest

from desktop.engines.remote import probe
from tests.engines.remote.driving import run
from tests.engines.remote.fake_server import FakeServer


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
