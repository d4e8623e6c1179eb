"""Trees that look like an Ascend machine's, for the doctor: whole, and with one thing wrong."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from pathlib import Path

from desktop.client.interpreter import Report as Interpreter
from desktop.doctor import ascend
from desktop.doctor.gpus import Gpus
from desktop.doctor.machine import Disk, Machine
from desktop.settings import Values
from tests.engines.ascend import trees
from tests.support import programs

SAMPLES = Path(__file__).parent / "npu_smi"
GIB = 1 << 30
IDLE = (SAMPLES / "910b-24.1.txt").read_text("utf-8")
DRIVER_INFO = """Version=24.1.rc3
ascendhal_version=7.35.19
package_version=24.1.rc3
"""
CURRENT = {"vllm": "0.18.0", "vllm-ascend": "0.18.0", "torch": "2.9.0",
           "torch-npu": "2.9.0.post1", "transformers": "4.57.6", "msgspec": "0.19",
           "pillow": "11.0"}
LEGACY = {"vllm": "0.8.5.post1", "vllm-ascend": "0.8.5rc1", "torch": "2.5.1",
          "torch-npu": "2.5.1", "transformers": "4.51.3"}


@dataclass
class Tree:
    """A machine below ``root``."""

    root: Path
    environment: dict[str, str]
    versions: dict[str, str]
    python: str = "3.11.14"
    prefix: str = "/nowhere"
    disk: int = 400 * GIB
    memory: int = 512 * GIB
    limit: int = 0
    experts: str = '{"state": "not-needed", "reason": ""}'
    """What the engine's Python says when it is asked about the MoE patch."""

    def file(self, path: str, text: str = "") -> Path:
        """A file of the machine."""
        made = self.root / path.lstrip("/")
        made.parent.mkdir(parents=True, exist_ok=True)
        made.write_text(text)
        return made

    def drop(self, *paths: str) -> None:
        """Take files away."""
        for path in paths:
            (self.root / path.lstrip("/")).unlink()

    def smi(self, said: str, status: int = 0, mapping: str = "map-910b") -> None:
        """What npu-smi answers to "info" from now on, and to "info -m" the sample MAPPING."""
        table = self.file("/samples/info.txt", said)
        programs.write(self.root / "usr/local/bin/npu-smi", (
            '#!/bin/sh\n[ -z "$ASCEND_RT_VISIBLE_DEVICES" ] || exit 9\n'
            f'case "$*" in info) cat {table}; exit {status};;'
            f' "info -m") cat {SAMPLES}/{mapping}.txt;; *) exit 1;; esac\n'))

    def look(self, **settings: object) -> ascend.Report:
        """Examine it."""
        values = Values({"engine": "vllm", **settings})
        machine = Machine("Linux", self.python, "/usr/bin/python", 64, self.memory, self.memory,
                          self.limit, (Disk("models", "/data/models", self.disk, 2 * self.disk),),
                          Gpus())
        python = programs.write(self.root / "opt/engine/python",
                                f"#!/bin/sh\ncat <<'END'\n{self.experts}\nEND\n")
        report = Interpreter(str(python), self.python, self.prefix, self.versions)
        return ascend.look(values, machine, report, environ=self.environment, root=str(self.root))


def healthy(root: Path, cann: str = "8.5.1", versions: dict[str, str] | None = None) -> Tree:
    """A machine on which nothing is wrong, laid out as installers of CANN lay it out."""
    machine = platform.machine()
    if cann == "8.1.RC1":
        base = trees.old(root, machine)
        home = base / "ascend-toolkit/latest"
    else:
        base = trees.new(root, cann, machine)
        home = base / "cann"
    atb = base / "nnal/atb/latest/atb/cxx_abi_1"
    tree = Tree(root, {
        "PATH": "/usr/bin:/bin", "HOME": str(root / "root"),
        "ASCEND_TOOLKIT_HOME": str(home), "ASCEND_HOME_PATH": str(home),
        "ASCEND_OPP_PATH": str(home / "opp"), "ATB_HOME_PATH": str(atb),
        "LD_LIBRARY_PATH": f"{atb}/lib:{home}/lib64:{base}/driver/lib64/driver"
                           f":{base}/driver/lib64/common",
    }, dict(versions or CURRENT))
    if versions is LEGACY:
        tree.experts = '{"state": "applied", "reason": "fused_moe has to be vllm-ascend\'s"}'
    (root / "root").mkdir()
    for name in ("davinci0", "davinci1", "davinci_manager", "devmm_svm", "hisi_hdc"):
        tree.file(f"/dev/{name}")
    (root / "dev/shm").mkdir()
    tree.file("/etc/ascend_install.info", "UserName=HwHiAiUser\n"
              "Driver_Install_Path_Param=/usr/local/Ascend\n")
    tree.file("/usr/local/Ascend/driver/version.info", DRIVER_INFO)
    (home / "lib64/libhccl.so").write_text("")
    tree.smi(IDLE)
    return tree


def codes(report: ascend.Report) -> set[str]:
    """What REPORT has to say."""
    return {problem.code for problem in (*report.problems, *report.warnings)}
