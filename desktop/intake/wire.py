"""What the application and a drawing process say to each other: msgpack frames over pipes.

A frame is its length (4 bytes, big-endian) and the message. Paths are bytes, because a file name
need not be text. After :class:`Started` every request gets exactly one reply.
"""

from __future__ import annotations

from typing import BinaryIO, Union

import msgspec

from desktop.intake.errors import Failure
from desktop.intake.model import Kind

_LIMIT = 1 << 20
"""Longest frame; longer ones are a broken pipe's junk."""


class OpenFile(msgspec.Struct, frozen=True, tag="open"):
    """Examine a file."""

    path: bytes
    password: Union[str, None]
    seconds: float


class DrawPage(msgspec.Struct, frozen=True, tag="draw"):
    """Draw a page to IMAGE (and its words to WORDS, unless that is empty)."""

    path: bytes
    password: Union[str, None]
    number: int
    dpi: int
    max_pixels: int
    max_side: int
    clockwise: int
    image: bytes
    words: bytes
    seconds: float


Request = Union[OpenFile, DrawPage]


class Started(msgspec.Struct, frozen=True, tag="started"):
    """The process is ready for its first request."""


class Opened(msgspec.Struct, frozen=True, tag="opened"):
    """What the file is."""

    kind: Kind
    pages: int
    encrypted: bool


class Drawn(msgspec.Struct, frozen=True, tag="drawn"):
    """The bitmap was written; WORDS tells whether the page has any of its own."""

    width: int
    height: int
    dpi: float
    words: bool
    blank: bool
    lowered: bool
    damaged: bool
    paged: bool = False
    memory_mb: int = 0
    """What the process holds now; the application replaces one that has grown."""


Reply = Union[Started, Opened, Drawn, Failure]

_request = msgspec.msgpack.Decoder(Request)
_reply = msgspec.msgpack.Decoder(Reply)


def send(stream: BinaryIO, message: Union[Request, Reply]) -> None:
    """Write MESSAGE at once; raises OSError when the other end is gone."""
    data = msgspec.msgpack.encode(message)
    stream.write(len(data).to_bytes(4, "big") + data)
    stream.flush()


def receive_request(stream: BinaryIO) -> Request:
    """The next request; raises EOFError when there are no more."""
    return _request.decode(_frame(stream))


def receive_reply(stream: BinaryIO) -> Reply:
    """The next reply; raises EOFError when the process is gone."""
    return _reply.decode(_frame(stream))


def _frame(stream: BinaryIO) -> bytes:
    length = int.from_bytes(_exactly(stream, 4), "big")
    if length > _LIMIT:
        raise EOFError(f"frame of {length} bytes")
    return _exactly(stream, length)


def _exactly(stream: BinaryIO, count: int) -> bytes:
    data = b""
    while len(data) < count:
        more = stream.read(count - len(data))
        if not more:
            raise EOFError
        data += more
    return data
