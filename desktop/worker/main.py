"""The worker process, from its first line to its last.

Started as ``python -m desktop.worker DESCRIPTOR``: the number of an inherited, connected socket.
So there is no address to be guessed and nobody to be authenticated, and the end of either
process ends the connection. Standard output and error are pipes of the application's that carry
nothing but lines for the log: whatever engines and native libraries print cannot harm a message.

Runs on Python 3.10 with msgspec alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import faulthandler
import logging
import os
import platform
import signal
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from types import FrameType
from typing import Any, Optional, Sequence

from desktop import i18n
from desktop.protocol.messages import VERSION, AnyCommand, Hello, StartEngine
from desktop.protocol.wire import Channel, ChannelClosed, GarbledMessage
from desktop.worker import lifetime
from desktop.worker.loop import Worker
from desktop.worker.outbox import Outbox, OutboxHandler

TRANSLATIONS = "VERSO_TRANSLATIONS"
"""Environment variable with the folder of message catalogues: what the worker says to a person
is in the language of the setting ``language``."""

_SETTLE = 0.3
"""Seconds for Python's resource tracker to release shared memory before the group is killed."""


def main(arguments: Sequence[str]) -> int:
    """Run the worker on the connection that ARGUMENTS name; the exit status."""
    lifetime.die_with_parent()
    faulthandler.enable()
    descriptor = int(arguments[0])
    os.set_inheritable(descriptor, False)  # What the engine starts must not hold it open.
    channel = Channel.of_worker(Connection(descriptor))
    outbox = Outbox(channel)
    outbox.send(Hello(VERSION, os.getpid(), platform.python_version()))
    _log_to(outbox)
    alone = threading.Event()
    status = asyncio.run(_run(channel, outbox, alone))
    # Threads that an engine left behind would hold up the exit.
    lifetime.end_within(lifetime.GRACE)
    outbox.close(lifetime.GRACE)
    if alone.is_set():
        time.sleep(_SETTLE)
        lifetime.kill_group()  # The application would have seen to the engine's children.
    return status


def _log_to(outbox: Outbox) -> None:
    handler = OutboxHandler(outbox)
    handler.setFormatter(logging.Formatter("%(message)s"))
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    logging.captureWarnings(True)


async def _run(channel: Channel[AnyCommand], outbox: Outbox, alone: threading.Event) -> int:
    """Work until the end; sets ALONE when it came because the application is gone."""
    loop = asyncio.get_running_loop()
    outbox.attach(loop)
    worker = Worker(outbox)

    def post(call: Callable[..., None], *values: Any) -> None:
        # A loop that is closed already has nothing left to be told.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(call, *values)

    def end() -> None:
        lifetime.end_within(lifetime.GRACE)
        post(worker.stop)

    def orphaned() -> None:
        alone.set()
        end()

    def on_signal(_number: int, _frame: Optional[FrameType]) -> None:
        end()

    def receive() -> None:
        while True:
            try:
                command = channel.receive()
            except ChannelClosed:
                orphaned()
                return
            except GarbledMessage as error:
                post(worker.refuse, error)
                return
            if isinstance(command, StartEngine) and os.environ.get(TRANSLATIONS):
                i18n.set_language(str(command.settings.get("language") or "en"),
                                  Path(os.environ[TRANSLATIONS]))
            post(worker.take, command)

    # Not loop.add_signal_handler: this one runs also while an engine blocks the loop.
    signal.signal(signal.SIGTERM, on_signal)
    lifetime.watch_parent(orphaned)
    threading.Thread(target=receive, name="commands", daemon=True).start()
    return await worker.run()


