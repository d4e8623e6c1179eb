"""Files that are not all here yet."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from desktop.models.part import Part

CONTENT = bytes(range(200))
PIECES = st.lists(st.tuples(st.integers(0, 199), st.integers(0, 60)), max_size=12)


def new(folder: Path, size: int = len(CONTENT), checksum: str = "sha256:1") -> Part:
    return Part(folder, "weights", size, checksum)


@given(pieces=PIECES, longest=st.integers(1, 300))
@settings(max_examples=30, deadline=None,
          suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_gaps_are_what_was_not_written(pieces: list[tuple[int, int]], longest: int,
                                       tmp_path: Path) -> None:
    part = new(tmp_path)
    part.forget()
    here: set[int] = set()
    for start, length in pieces:
        stop = min(len(CONTENT), start + length)
        part.write(start, CONTENT[start:stop])
        here |= set(range(start, stop))
    assert part.done == len(here)
    gaps = part.gaps(longest)
    missing = [number for start, stop in gaps for number in range(start, stop)]
    assert missing == sorted(set(range(len(CONTENT))) - here)
    assert all(0 < stop - start <= longest for start, stop in gaps)
    part.save()
    assert new(tmp_path).gaps(longest) == gaps
    for start, stop in gaps:
        part.write(start, CONTENT[start:stop])
    assert part.complete
    part.place()
    assert (tmp_path / "weights").read_bytes() == CONTENT
    assert [path.name for path in tmp_path.iterdir()] == ["weights"]


def test_the_record_is_kept_for_the_same_file_only(tmp_path: Path) -> None:
    part = new(tmp_path)
    part.etag = '"v1"'
    part.write(10, b"abc")
    part.save()
    again = new(tmp_path)
    assert (again.done, again.etag) == (3, '"v1"')
    assert new(tmp_path, checksum="sha256:2").done == 0
    assert not (tmp_path / "weights.part").exists(), "of another version"


@pytest.mark.parametrize("record", [
    b"", b"[]", b"{", b"\xff", b'{"size": 200}',
    json.dumps({"size": 200, "checksum": "sha256:1", "etag": "", "done": "all"}).encode(),
    json.dumps({"size": 200, "checksum": "sha256:1", "etag": "", "done": [[1]]}).encode()])
def test_a_record_that_cannot_be_understood_begins_anew(record: bytes, tmp_path: Path) -> None:
    (tmp_path / "weights.part").write_bytes(CONTENT)
    (tmp_path / "weights.part.json").write_bytes(record)
    assert new(tmp_path).done == 0


def test_a_record_that_claims_more_than_is_there_is_not_believed(tmp_path: Path) -> None:
    (tmp_path / "weights.part").write_bytes(CONTENT[:50])
    (tmp_path / "weights.part.json").write_text(json.dumps({
        "size": 200, "checksum": "sha256:1", "etag": "", "done": [[0, 40], [30, 100], [-5, 3],
                                                                  [90, 20]]}))
    assert new(tmp_path).gaps(1000) == [(40, 200)]


def test_an_empty_file(tmp_path: Path) -> None:
    part = new(tmp_path, size=0)
    assert part.complete
    part.place()
    assert (tmp_path / "weights").read_bytes() == b""
