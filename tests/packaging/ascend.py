"""What the tests of the containers for NPUs share: hosts and images made of stand-ins."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from desktop.engines.ascend.support import BEST
from desktop.settings.store import Store
from tests.support import programs
from tests.support.data import ROOT

HERE = ROOT / "packaging/ascend"
CONTROL = ("davinci_manager", "devmm_svm", "hisi_hdc")
TOOLS = ("bash", "sh", "sed", "tail", "head", "sort", "uniq", "uname", "dirname", "basename", "cat",
         "id", "mkdir", "cp", "env", "mktemp", "rm", "chmod", "getconf", "tr", "git")
BASE = f"quay.io/ascend/vllm-ascend:v{BEST}"
"""The image that is started by default."""


class Machine:
    """A host with NPUs below ``root``, and a docker that writes its arguments down."""

    def __init__(self, folder: Path, npus: tuple[int, ...] = (0,)) -> None:
        self.root = folder / "machine"
        self.bin = folder / "bin"
        self.calls = folder / "calls"
        self.home = folder / "home"
        for made in (self.root / "dev", self.bin, self.home):
            made.mkdir(parents=True)
        for tool in TOOLS:
            (self.bin / tool).symlink_to(shutil.which(tool) or f"/usr/bin/{tool}")
        self.docker("docker")
        for number in npus:
            self.file(f"/dev/davinci{number}")
        for name in CONTROL:
            self.file(f"/dev/{name}")
        for name in ("lib64/driver/libascend_hal.so", "version.info"):
            self.file(f"/usr/local/Ascend/driver/{name}")
        self.file("/usr/local/dcmi/libdcmi.so")
        self.file("/usr/local/bin/npu-smi")
        self.file("/etc/ascend_install.info", "Driver_Install_Path_Param=/usr/local/Ascend\n")
        self.data = folder / "the data"  # a space: paths must be quoted
        (self.data / "models/DeepSeek-OCR-2").mkdir(parents=True)
        (self.data / "models/DeepSeek-OCR-2/config.json").write_text("{}")
        self.env = {"PATH": str(self.bin), "HOME": str(self.home), "CALLS": str(self.calls),
                    "VERSO_TEST_MACHINE": str(self.root)}

    def docker(self, name: str, script: str = "") -> None:
        programs.write(self.bin / name, "#!/bin/sh\n" + (script or (
            'for word; do printf "%s\\n" "$word"; done > "$CALLS"\n')))

    def file(self, path: str, text: str = "") -> Path:
        made = self.root / path.lstrip("/")
        made.parent.mkdir(parents=True, exist_ok=True)
        made.write_text(text)
        return made

    def start(self, *words: str, data: bool = True,
              **env: str) -> subprocess.CompletedProcess[str]:
        options = ["--data", str(self.data)] if data else []
        return subprocess.run(
            [HERE / "start", *options, *words], env={**self.env, **env}, cwd=self.home,
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=240, check=False)

    def told(self, *words: str, data: bool = True, **env: str) -> list[str]:
        """What docker was called with."""
        self.calls.unlink(missing_ok=True)
        ran = self.start(*words, data=data, **env)
        assert ran.returncode == 0, ran.stderr
        return self.calls.read_text().splitlines()


def values(told: list[str], option: str) -> list[str]:
    """What follows each OPTION."""
    return [told[place + 1] for place, word in enumerate(told) if word == option]


class Image:
    """A system in which ``install`` runs with stand-ins for Python and apt."""

    def __init__(self, folder: Path, version: str = "3.11", machine: str = "x86_64",
                 glibc: str = "2.35") -> None:
        self.root = folder / "system"
        self.bin = folder / "bin"
        self.calls = folder / "calls"
        for made in (self.bin, self.root / "usr/local/bin", self.root / "opt",
                     self.root / "var/lib/apt/lists"):
            made.mkdir(parents=True)
        for tool in TOOLS:
            if tool not in ("uname", "getconf"):
                (self.bin / tool).symlink_to(shutil.which(tool) or f"/usr/bin/{tool}")
        new = tuple(map(int, version.split("."))) >= (3, 11)
        self.tool("python3", f"""
echo "python3 $*" >> "$CALLS"
case "$*" in
  "-c import msgspec, PIL") exit "${{NO_MSGSPEC:-0}}" ;;
  "-c import "*version_info*) exit {0 if new else 1} ;;
  "-m venv "*) mkdir -p "$3/bin"; cp "$ENVIRONMENT" "$3/bin/python"; cp "$VERSO" "$3/bin/verso" ;;
  "-m uv python find "*) echo "$MANAGED" ;;
esac
""")
        self.managed = programs.write(
            folder / "managed",
            '#!/bin/sh\necho "managed $*" >> "$CALLS"\nmkdir -p "$3/bin"\n'
            'cp "$ENVIRONMENT" "$3/bin/python"; cp "$VERSO" "$3/bin/verso"\n')
        self.environment = programs.write(folder / "environment", f"""#!/bin/sh
echo "python $*" >> "$CALLS"
[ "$1" != - ] || exec {sys.executable} "$@"
for word; do case "$word" in */tmp.*) cat "$word" > "$CALLS.list" ;; esac; done
""")
        self.verso = programs.write(
            folder / "verso",
            '#!/bin/sh\necho "verso $* in $PWD, PYTHONPATH=$PYTHONPATH" >> "$CALLS"\n')
        self.tool("uname", f'case "$*" in -m) echo {machine};; *) echo Linux;; esac\n')
        self.tool("getconf", f"echo glibc {glibc}\n")
        self.tool("apt-get", 'echo "apt-get $*" >> "$CALLS"\n')
        self.tool("apt-cache", "exit 1\n")
        self.tool("id", "echo 0\n")
        self.tool("ldconfig", "exit 0\n")
        self.env = {"PATH": str(self.bin), "CALLS": str(self.calls), "HOME": str(folder),
                    "ENVIRONMENT": str(self.environment), "VERSO": str(self.verso),
                    "MANAGED": str(self.managed),
                    "PYTHONPATH": "/cann/site-packages", "VERSO_TEST_MACHINE": str(self.root),
                    "TMPDIR": "/tmp"}

    def tool(self, name: str, text: str) -> None:
        programs.write(self.bin / name, "#!/bin/sh\n" + text)

    def install(self, stack: str, **env: str) -> list[str]:
        ran = subprocess.run([HERE / "install", stack], env={**self.env, **env},
                             capture_output=True, text=True, timeout=240, check=False)
        assert ran.returncode == 0, ran.stderr
        return self.calls.read_text().splitlines()

    def settings(self) -> dict[str, object]:
        """What Verso makes of the settings in the image."""
        loaded = Store(self.root / "verso/config/settings.json").load()
        assert [each for each in loaded.problems if "ascend" not in each.message] == []
        return loaded.values.changed()
