"""CANN, driver and ATB in every layout they are installed in."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import pytest

from desktop.engines.ascend.places import Missing, Places, Search, Toolkit, bases, find
from desktop.engines.ascend.problems import bearable, errors, first_fatal
from tests.engines.ascend import trees

VARIABLES = ("ASCEND_TOOLKIT_HOME", "ASCEND_HOME_PATH", "ASCEND_AICPU_PATH")


def look(root: Path, *, machine: str = "aarch64", abi: int | None = 1, wanted: str = "",
         **environ: str) -> Places:
    return find(Search(environ, str(root / "home/somebody"), str(root), machine, abi, wanted))


def what(places: Places) -> list[str]:
    return [each.what for each in places.missing]


def test_8_1_of_root(tmp_path: Path) -> None:
    base = trees.old(tmp_path)
    places = look(tmp_path, abi=0)
    assert places.missing == ()
    assert places.toolkit == Toolkit(f"{base}/ascend-toolkit/latest", "8.1.RC1")
    assert places.toolkits == (places.toolkit,)
    assert places.driver == tuple(f"{base}/driver/{name}" for name in (
        "lib64/driver", "lib64/common", "lib64"))
    assert (places.atb, places.abi) == (f"{base}/nnal/atb/latest/atb/cxx_abi_0", 0)


def test_8_5_of_root_in_two_names_is_one_toolkit(tmp_path: Path) -> None:
    base = trees.new(tmp_path, machine="x86_64")
    places = look(tmp_path, machine="AMD64")
    assert places.machine == "x86_64"
    assert places.missing == ()
    assert places.toolkits == (Toolkit(f"{base}/cann", "8.5.1"),)
    assert places.atb == f"{base}/nnal/atb/latest/atb/cxx_abi_1"


def test_latest_as_a_folder_of_links_is_one_toolkit(tmp_path: Path) -> None:
    base = trees.old(tmp_path)
    latest = base / "ascend-toolkit/latest"
    latest.unlink()
    latest.mkdir()
    for part in (base / "ascend-toolkit/8.1.RC1").iterdir():
        (latest / part.name).symlink_to(f"../8.1.RC1/{part.name}")
    (latest / "arm64-linux").symlink_to("../8.1.RC1/aarch64-linux")
    places = look(tmp_path)
    assert places.missing == ()
    assert places.toolkits == (Toolkit(str(latest), "8.1.RC1"),)


def test_in_a_home_beside_the_driver_of_root(tmp_path: Path) -> None:
    home = tmp_path / "home/somebody/Ascend"
    trees.toolkit(home / "cann-9.0.0", "9.0.0")
    (home / "cann").symlink_to("cann-9.0.0")
    trees.nnal(home, "9.0.0")
    trees.driver(tmp_path / trees.SYSTEM)
    places = look(tmp_path)
    assert places.missing == ()
    assert places.toolkit == Toolkit(f"{home}/cann", "9.0.0")
    assert places.atb == f"{home}/nnal/atb/latest/atb/cxx_abi_1"
    assert places.driver[0] == f"{tmp_path}/{trees.SYSTEM}/driver/lib64/driver"


@pytest.mark.parametrize("name", VARIABLES)
def test_a_container_image_whose_variables_name_everything(tmp_path: Path, name: str) -> None:
    # Only lib64 of the driver is mounted; there is nothing under /etc.
    base = trees.new(tmp_path, "8.5.0")
    environ = {name: f"{base}/cann-8.5.0", "ASCEND_OPP_PATH": f"{base}/cann-8.5.0/opp",
               "ATB_HOME_PATH": f"{base}/nnal/atb/latest/atb/cxx_abi_1"}
    places = look(tmp_path, **environ)
    assert places.missing == ()
    assert places.toolkit == Toolkit(f"{base}/cann-8.5.0", "8.5.0", name)
    assert len(places.toolkits) == 1


def test_where_the_installers_wrote_down_that_it_is(tmp_path: Path) -> None:
    trees.toolkit(tmp_path / "data/cann/ascend-toolkit/8.2.RC1", "8.2.RC1")
    (tmp_path / "data/cann/ascend-toolkit/latest").symlink_to("8.2.RC1")
    trees.nnal(tmp_path / "data/cann", "8.2.RC1")
    trees.driver(tmp_path / "opt/npu")
    trees.file(tmp_path / "etc/Ascend/ascend_cann_install.info",
               "Install_Path=/data/cann/\nuser=root\n")
    trees.file(tmp_path / "etc/ascend_install.info", "Driver_Install_Path_Param=/opt/npu\n")
    places = look(tmp_path)
    assert places.missing == ()
    assert places.toolkit == Toolkit(f"{tmp_path}/data/cann/ascend-toolkit/latest", "8.2.RC1")
    assert places.driver[0] == f"{tmp_path}/opt/npu/driver/lib64/driver"
    assert places.atb.startswith(f"{tmp_path}/data/cann/nnal/")


def test_a_toolkit_anywhere_that_a_variable_names_has_its_atb_beside_it(tmp_path: Path) -> None:
    trees.toolkit(tmp_path / "x/CANN9/ascend-toolkit/latest", "9.0.0")
    trees.nnal(tmp_path / "x/CANN9", "9.0.0")
    trees.driver(tmp_path / trees.SYSTEM)
    places = look(tmp_path, ASCEND_HOME_PATH=f"{tmp_path}/x/CANN9/ascend-toolkit/latest/")
    assert places.missing == ()
    assert places.atb == f"{tmp_path}/x/CANN9/nnal/atb/latest/atb/cxx_abi_1"


def test_without_the_link_latest_the_newest_version_is_taken(tmp_path: Path) -> None:
    base = tmp_path / trees.SYSTEM
    for version in ("8.1.RC1", "8.3.RC2", "8.3.0", "8.3.RC1"):
        trees.toolkit(base / "ascend-toolkit" / version, version)
    (base / "ascend-toolkit/latest").symlink_to("8.5.0")  # was taken away since
    trees.driver(base)
    trees.nnal(base, "8.3.RC2")
    (base / "nnal/atb/latest").unlink()
    places = look(tmp_path)
    assert places.missing == ()
    assert [each.version for each in places.toolkits] == ["8.3.0", "8.3.RC2", "8.3.RC1", "8.1.RC1"]
    assert places.atb == f"{base}/nnal/atb/8.3.RC2/atb/cxx_abi_1"


def test_of_several_the_one_that_goes_with_vllm_ascend_unless_a_variable_says(
        tmp_path: Path) -> None:
    base = trees.old(tmp_path)
    trees.toolkit(base / "cann-9.0.0", "9.0.0")
    (base / "cann").symlink_to("cann-9.0.0")
    old, new = Toolkit(f"{base}/ascend-toolkit/latest", "8.1.RC1"), Toolkit(f"{base}/cann", "9.0.0")
    assert look(tmp_path).toolkits == (new, old)
    assert look(tmp_path, wanted="8.1.RC1").toolkits == (old, new)
    assert look(tmp_path, wanted="7.0.0").toolkit == new
    named = look(tmp_path, wanted="9.0.0", ASCEND_HOME_PATH=old.path)
    assert named.toolkit == Toolkit(old.path, "8.1.RC1", "ASCEND_HOME_PATH")


def test_the_version_is_also_in_a_folder_name(tmp_path: Path) -> None:
    path = trees.toolkit(tmp_path / trees.SYSTEM / "cann-8.5.2", "8.5.2")
    os.unlink(path / "aarch64-linux/ascend_toolkit_install.info")
    (path.parent / "cann").symlink_to("cann-8.5.2")
    found = look(tmp_path).toolkit
    assert found is not None
    assert found.version == "8.5.2"


def test_nothing_at_all_names_every_place(tmp_path: Path) -> None:
    places = look(tmp_path)
    assert (places.toolkit, places.driver, places.atb) == (None, (), "")
    assert what(places) == ["toolkit", "driver", "atb"]
    assert not places.can_start
    base = f"{tmp_path}/{trees.SYSTEM}"
    looked = {each.what: each.looked for each in places.missing}
    assert {f"{base}/cann", f"{base}/ascend-toolkit/latest",
            f"{tmp_path}/home/somebody/Ascend/cann"} <= set(looked["toolkit"])
    assert f"{base}/driver" in looked["driver"]
    assert f"{base}/nnal/atb/latest/atb" in looked["atb"]


def test_a_missing_atb_alone_does_not_keep_from_starting(tmp_path: Path) -> None:
    base = trees.old(tmp_path)
    (base / "nnal").rename(base / "nnal-was")
    places = look(tmp_path)
    assert what(places) == ["atb"]
    assert places.can_start


@pytest.mark.parametrize(("forms", "abi", "got"), [
    ((0, 1), 0, 0), ((0, 1), 1, 1), ((1,), None, 1), ((0,), None, 0), ((0, 1), None, 1),
])
def test_atb_in_the_form_that_torch_has(tmp_path: Path, forms: tuple[int, ...], abi: int | None,
                                        got: int) -> None:
    trees.nnal(tmp_path / trees.SYSTEM, "8.5.0", forms)
    places = look(tmp_path, abi=abi)
    assert places.atb.endswith(f"/nnal/atb/latest/atb/cxx_abi_{got}")
    assert places.abi == got
    assert "atb" not in what(places)


def test_atb_in_the_other_form_only_is_not_used_and_named(tmp_path: Path) -> None:
    base = trees.new(tmp_path)
    os.unlink(base / "nnal/atb/8.5.1/atb/cxx_abi_0/lib/libatb.so")
    places = look(tmp_path, abi=0)
    assert places.atb == ""
    assert places.missing == (Missing(
        "atb_abi", (f"{base}/nnal/atb/latest/atb/cxx_abi_1",), False, "0"),)
    (error,) = errors(places)
    assert "cxx_abi_0" in error.problem().message


def test_the_right_form_elsewhere_is_better_than_the_other_one_here(tmp_path: Path) -> None:
    base = trees.new(tmp_path)
    os.unlink(base / "nnal/atb/8.5.1/atb/cxx_abi_0/lib/libatb.so")
    trees.nnal(tmp_path / "home/somebody/Ascend", "8.5.1", (0,))
    places = look(tmp_path, abi=0)
    assert places.atb.startswith(f"{tmp_path}/home/somebody/Ascend/nnal/")
    assert places.missing == ()


def test_the_form_that_a_variable_names_counts_where_torch_does_not_say(tmp_path: Path) -> None:
    base = trees.new(tmp_path)
    told = f"{base}/nnal/atb/latest/atb/cxx_abi_0"
    assert look(tmp_path, abi=None, ATB_HOME_PATH=told).atb == told
    right = look(tmp_path, abi=1, ATB_HOME_PATH=told)
    assert right.atb == told.replace("abi_0", "abi_1")


def test_an_atb_built_by_oneself_is_where_its_variable_says(tmp_path: Path) -> None:
    trees.new(tmp_path)
    own = tmp_path / "src/output/atb"
    trees.file(own / "cxx_abi_1/lib/libatb.so")
    assert look(tmp_path, ATB_HOME_PATH=f"{own}/cxx_abi_1/").atb == f"{own}/cxx_abi_1"


def test_a_toolkit_for_another_machine(tmp_path: Path) -> None:
    base = trees.old(tmp_path, "aarch64")
    places = look(tmp_path, machine="x86_64")
    assert places.toolkit is None
    assert places.missing[0] == Missing(
        "toolkit_machine", (f"{base}/ascend-toolkit/latest",), True, "aarch64")
    error = first_fatal(places)
    assert error is not None
    assert "aarch64" in str(error)
    assert "x86_64" in str(error)


def test_the_machine_is_this_one_unless_told(tmp_path: Path) -> None:
    trees.new(tmp_path, machine=platform.machine())
    assert look(tmp_path, machine="").missing == ()


def test_variables_that_mislead_are_named_and_passed_over(tmp_path: Path) -> None:
    base = trees.new(tmp_path)
    places = look(tmp_path, ASCEND_HOME_PATH="/gone/cann", ASCEND_TOOLKIT_HOME=str(base),
                  ATB_HOME_PATH="/gone/atb")
    assert {(each.detail, each.looked[0]) for each in places.missing} == {
        ("ASCEND_HOME_PATH", "/gone/cann"), ("ASCEND_TOOLKIT_HOME", str(base)),
        ("ATB_HOME_PATH", "/gone/atb")}
    assert places.can_start
    assert places.toolkit == Toolkit(f"{base}/cann", "8.5.1")


def test_a_toolkit_without_operators_or_modules(tmp_path: Path) -> None:
    base = trees.old(tmp_path)
    home = base / "ascend-toolkit/8.1.RC1"
    (home / "opp/built-in/op_impl/ai_core/tbe/kernel/ascend910b/add").rmdir()
    assert what(look(tmp_path)) == ["kernels"]
    assert look(tmp_path).can_start
    (home / "python").rename(home / "python-was")
    assert what(look(tmp_path)) == ["python", "kernels"]
    assert not look(tmp_path).can_start


def test_a_driver_folder_without_its_library(tmp_path: Path) -> None:
    base = trees.old(tmp_path)
    os.unlink(base / "driver/lib64/driver/libascend_hal.so")
    places = look(tmp_path)
    assert places.missing == (Missing("driver_library", (f"{base}/driver/lib64",), True),)


@pytest.mark.parametrize("folder", ["usr/lib64", "mnt/npu/lib"])
def test_a_driver_that_the_loader_finds_already(tmp_path: Path, folder: str) -> None:
    base = trees.new(tmp_path)
    (base / "driver").rename(base / "driver-was")
    trees.file(tmp_path / folder / "libascend_hal.so")
    places = look(tmp_path, LD_LIBRARY_PATH=f"/nowhere:{tmp_path}/mnt/npu/lib")
    assert places.driver == ()
    assert places.missing == ()


def test_the_copy_to_link_against_is_no_driver(tmp_path: Path) -> None:
    base = trees.new(tmp_path)
    (base / "driver").rename(base / "driver-was")
    assert (base / "cann/devlib/libascend_hal.so").exists()
    assert what(look(tmp_path, LD_LIBRARY_PATH=f"{base}/cann/devlib:/x/stub")) == ["driver"]


def test_what_cannot_be_read_is_not_there(tmp_path: Path) -> None:
    trees.new(tmp_path)
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/ascend_install.info").mkdir()
    trees.file(tmp_path / "etc/Ascend/ascend_cann_install.info").write_bytes(b"\xff=\xfe\nx")
    assert look(tmp_path).missing == ()


def test_bases_are_named_once_the_own_first(tmp_path: Path) -> None:
    trees.file(tmp_path / "etc/ascend_install.info",
               "Driver_Install_Path_Param=/usr/local/Ascend\nFirmware_Install_Path_Param=/fw\n")
    found = bases(Search({}, str(tmp_path / "home/x"), str(tmp_path)))
    assert found == tuple(f"{tmp_path}/{name}" for name in (
        "home/x/Ascend", "usr/local/Ascend", "fw", "opt/Ascend"))


def test_each_problem_has_a_sentence_and_a_way_out(tmp_path: Path) -> None:
    kinds = ("toolkit", "toolkit_machine", "python", "driver", "driver_library", "atb", "atb_abi",
             "kernels", "variable")
    missing = tuple(Missing(kind, ("/looked/here",), kind == "driver", "1") for kind in kinds)
    places = Places("aarch64", None, (), (), "", None, missing)
    problems = [error.problem() for error in errors(places)]
    assert problems[0].code == "ascend.environment.driver"  # what is fatal comes first
    assert len({problem.code for problem in problems}) == len(kinds)
    for problem in problems:
        assert "/looked/here" in problem.message
        assert "{" not in problem.line()
        assert problem.hint


def test_a_worker_tells_what_it_does_without_and_no_more(tmp_path: Path) -> None:
    """Seen from inside, where the variables name everything that was found."""
    toolkit = trees.toolkit(tmp_path / "cann", "8.5.1", look(tmp_path, machine="").machine,
                            kernels=False)
    environ = {"ASCEND_HOME_PATH": str(toolkit)}
    assert [error.code for error in bearable(environ)] == [
        "ascend.environment.kernels", "ascend.environment.atb"]  # nor is there a driver
    atb = trees.nnal(tmp_path, "8.5.1") / "latest/atb/cxx_abi_1"
    assert [error.code for error in bearable({**environ, "ATB_HOME_PATH": str(atb)})] == [
        "ascend.environment.kernels"]
