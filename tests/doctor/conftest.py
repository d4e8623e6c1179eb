"""What tests of the doctor share."""

from __future__ import annotations

import pytest

from desktop.doctor import ascend_host, ascend_smi


@pytest.fixture
def no_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here hangs; a machine that is busy with other things may be slow."""
    for module in (ascend_smi, ascend_host):
        monkeypatch.setattr(module, "SECONDS", 600.0)
