"""Folders that look like an installed CANN, driver and NNAL, in the layouts that their installers
make; the libraries in them are empty files, or real ones where a compiler is there."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

SYSTEM = "usr/local/Ascend"

SET_ENV = """#!/bin/bash
touch "$(dirname "$0")/was-run"
function get_cxx_abi_option()
{
    cxx_abi=$1
}
    export ATB_HOME_PATH="${atb_path}/cxx_abi_${cxx_abi}"
    export ATB_HOME_PATH=/opt/built-here/cxx_abi_1
    export LD_LIBRARY_PATH=$ATB_HOME_PATH/lib:$LD_LIBRARY_PATH
    export ATB_STREAM_SYNC_EVERY_KERNEL_ENABLE=0 #wait after each kernel
    export ATB_OPSRUNNER_KERNEL_CACHE_GLOABL_COUNT=5 #1~1024
    export ATB_WORKSPACE_MEM_ALLOC_ALG_TYPE=1
    export ATB_SHARE_MEMORY_NAME_SUFFIX="" #none
    export LCCL_PARALLEL=0 #0 1
    export ATB_COMPUTED=$(uname -m)
"""


def file(path: Path, text: str = "") -> Path:
    """A file at PATH with TEXT."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def toolkit(path: Path, version: str, machine: str = "aarch64", *, cfg: bool = False,
            kernels: bool = True) -> Path:
    """A toolkit of VERSION for MACHINE at PATH. CFG: an older one, whose version is in
    ``version.cfg``."""
    own = path / f"{machine}-linux"
    file(own / "lib64" / "libascendcl.so")
    (own / "lib64" / "plugin" / "opskernel").mkdir(parents=True)
    (own / "lib64" / "plugin" / "nnengine").mkdir()
    file(own / "devlib" / "libascend_hal.so")
    (path / "lib64").symlink_to(f"{machine}-linux/lib64")
    (path / "devlib").symlink_to(f"{machine}-linux/devlib")
    if cfg:
        file(path / "version.cfg", "# version: 1.0\n"
             f"runtime_running_version=[7.7.T20.0.B210:{version}]\n"
             f"toolkit_running_version=[7.7.T20.0.B210:{version}]\n")
    else:
        file(own / "ascend_toolkit_install.info",
             f"package_name=Ascend-cann-toolkit\nversion={version}\narch={machine}\n")
    tbe = path / "opp/built-in/op_impl/ai_core/tbe"
    (tbe / "op_tiling/lib/linux" / machine).mkdir(parents=True)
    (tbe / "kernel/ascend910b/ops_oam").mkdir(parents=True)
    if kernels:
        (tbe / "kernel/ascend910b/add").mkdir()
    file(path / "python/site-packages/te_of_cann.py", f"VERSION = {version!r}\n")
    file(path / "bin/ccec_of_cann").chmod(0o755)
    (path / "toolkit").mkdir()
    return path


def driver(base: Path) -> Path:
    """The driver under BASE."""
    file(base / "driver/lib64/driver/libascend_hal.so")
    file(base / "driver/lib64/common/libc_sec.so")
    return base / "driver"


def nnal(base: Path, version: str, forms: tuple[int, ...] = (0, 1), *, top: bool = True) -> Path:
    """NNAL of VERSION under BASE, with ``latest``; TOP: its script is above the version."""
    home = base / "nnal/atb"
    for form in forms:
        file(home / version / "atb" / f"cxx_abi_{form}" / "lib/libatb.so")
        (home / version / "atb" / f"cxx_abi_{form}" / "bin").mkdir()
    (home / "latest").symlink_to(version)
    file(home / "set_env.sh" if top else home / version / "atb/set_env.sh", SET_ENV)
    return home


def old(root: Path, machine: str = "aarch64") -> Path:
    """As CANN 8.1.RC1 is installed by root, with driver and NNAL; the folder of all."""
    base = root / SYSTEM
    toolkit(base / "ascend-toolkit/8.1.RC1", "8.1.RC1", machine, cfg=True)
    (base / "ascend-toolkit/latest").symlink_to("8.1.RC1")
    driver(base)
    nnal(base, "8.1.RC1")
    file(root / "etc/ascend_install.info",
         "UserName=HwHiAiUser\nDriver_Install_Type=full\n"
         "Driver_Install_Path_Param=/usr/local/Ascend\nDriver_Install_For_All=yes\n")
    return base


def new(root: Path, version: str = "8.5.1", machine: str = "aarch64") -> Path:
    """As CANN 8.5 and later is installed by root, with driver and NNAL; the folder of all."""
    base = root / SYSTEM
    toolkit(base / f"cann-{version}", version, machine)
    (base / "cann").symlink_to(f"cann-{version}")
    (base / "ascend-toolkit").mkdir()
    (base / "ascend-toolkit/latest").symlink_to(f"../cann-{version}")
    driver(base)
    nnal(base, version, top=False)
    return base


def torch(folder: Path, form: int) -> Path:
    """A torch whose library spells C++ strings in FORM, as its symbols show it."""
    spelled = "NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE" if form else "Ss"
    symbol = f"_ZN3c105ErrorC1ENS_14SourceLocationE{spelled}\0"
    (folder / "lib").mkdir(parents=True)
    (folder / "lib/libc10.so").write_bytes(
        b"\x7fELF" + bytes(5000) + b"_ZN3c105ErrorC1ENS_14SourceLocationEi\0" + symbol.encode()
        + bytes(100))
    return folder


def compile_library(path: Path, source: str, *flags: str) -> bool:
    """A real shared library at PATH; False where there is no C++ compiler."""
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        return False
    code = file(path.with_suffix(".cc"), source)
    path.unlink(missing_ok=True)
    subprocess.run([compiler, "-shared", "-fPIC", *flags, os.fspath(code), "-o",
                    os.fspath(path)], check=True)
    return True
