"""Messages as msgpack over a ``multiprocessing.connection``; bytes only, never pickle.

Runs on Python 3.10 with msgspec alone.
"""

from __future__ import annotations

import threading
from multiprocessing.connection import Connection
from typing import Any, Generic, TypeVar, Union

import msgspec

from desktop.errors import VersoError
from desktop.i18n import N_
from desktop.protocol.messages import VERSION, AnyCommand, AnyEvent, Command, Event

LONGEST = 64 << 20
"""Bytes of the longest message that is accepted; a page's whole text is under 1 MiB."""


class GarbledMessage(VersoError):
    """Bytes that are no message, or one that is not expected here."""

    code = "protocol.garbled"
    message = N_("The engine process sent something that Verso does not understand.")
    hint = N_("Verso starts it again by itself; if this repeats, please report it with the log.")


class VersionMismatch(VersoError):
    """The two ends speak different versions of the protocol."""

    code = "protocol.version"
    message = N_("The engine process speaks version {theirs} of the protocol, Verso speaks "
                 "version {ours}.")
    hint = N_("Close all of Verso and start it again; if this stays, install it anew.")


class ChannelClosed(Exception):
    """The other end is gone."""


_encoder = msgspec.msgpack.Encoder()
_commands: msgspec.msgpack.Decoder[AnyCommand] = msgspec.msgpack.Decoder(AnyCommand)
_events: msgspec.msgpack.Decoder[AnyEvent] = msgspec.msgpack.Decoder(AnyEvent)


def encode(message: Union[Command, Event]) -> bytes:
    """MESSAGE as bytes. Lone surrogates, which UTF-8 cannot hold, become question marks."""
    try:
        return _encoder.encode(message)
    except UnicodeEncodeError:
        return _encoder.encode(_clean(msgspec.to_builtins(message)))


def decode_command(data: bytes) -> AnyCommand:
    """The command in DATA; raises :class:`GarbledMessage`."""
    return _decode(_commands, data)


def decode_event(data: bytes) -> AnyEvent:
    """The event in DATA; raises :class:`GarbledMessage`."""
    return _decode(_events, data)


def check_version(theirs: int) -> None:
    """Raises :class:`VersionMismatch` unless THEIRS is our version of the protocol."""
    if theirs != VERSION:
        raise VersionMismatch(theirs=theirs, ours=VERSION)


_Message = TypeVar("_Message")


def _decode(decoder: msgspec.msgpack.Decoder[_Message], data: bytes) -> _Message:
    try:
        return decoder.decode(data)
    # Text that is no UTF-8 raises UnicodeDecodeError, nesting beyond all sense RecursionError.
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise GarbledMessage(detail=f"{error}: {data[:80]!r}") from error


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, dict):
        return {_clean(key): _clean(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_clean(item) for item in value]
    return value


class Channel(Generic[_Message]):
    """One end of the wire. Any thread may send; one thread receives."""

    def __init__(self, connection: Connection, decoder: msgspec.msgpack.Decoder[_Message]) -> None:
        self._connection = connection
        self._decoder = decoder
        self._sending = threading.Lock()

    @classmethod
    def of_application(cls, connection: Connection) -> Channel[AnyEvent]:
        """The end that receives events."""
        return Channel(connection, _events)

    @classmethod
    def of_worker(cls, connection: Connection) -> Channel[AnyCommand]:
        """The end that receives commands."""
        return Channel(connection, _commands)

    def fileno(self) -> int:
        """The descriptor to wait on (``multiprocessing.connection.wait``, ``select``)."""
        return self._connection.fileno()

    def send(self, message: Union[Command, Event]) -> None:
        """Send MESSAGE; blocks while the other end is behind. Raises :class:`ChannelClosed`."""
        self.send_encoded(encode(message))

    def send_encoded(self, data: bytes) -> None:
        """Send what :func:`encode` made. Raises :class:`ChannelClosed`."""
        with self._sending:
            try:
                self._connection.send_bytes(data)
            except (OSError, ValueError) as error:
                raise ChannelClosed(str(error)) from error

    def pending(self) -> bool:
        """Whether :meth:`receive` would find something (a message, or the end)."""
        try:
            return self._connection.poll(0)
        except (OSError, ValueError):
            return True

    def receive(self) -> _Message:
        """The next message; blocks. Raises :class:`ChannelClosed` at the end and
        :class:`GarbledMessage` for what is none (after a length that cannot be, nothing more can
        be received)."""
        try:
            data = self._connection.recv_bytes(LONGEST)
        except EOFError as error:
            raise ChannelClosed("end of stream") from error
        except OSError as error:
            # Python gives a length beyond the limit no class and no number of its own.
            if str(error) == "bad message length":
                raise GarbledMessage(detail=str(error)) from error
            raise ChannelClosed(str(error)) from error
        return _decode(self._decoder, data)

    def close(self) -> None:
        """Close this end."""
        self._connection.close()
