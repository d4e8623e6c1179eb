"""What holds of the rows of every examination of a machine with NPUs."""

from __future__ import annotations

from collections import Counter

from desktop.doctor import ascend, diagnosis, gpus, rows
from desktop.doctor.engines import Examination
from desktop.doctor.machine import Disk, Machine
from desktop.doctor.marks import Mark
from desktop.engines.registry import EngineEntry

GIB = 1 << 30
MACHINE = Machine("Linux", "3.11.9", "/usr/bin/python", 8, 64 * GIB, 60 * GIB, 0, (
    Disk("data", "/data", 90 * GIB, 100 * GIB), Disk("models", "/models", 90 * GIB, 100 * GIB),
    Disk("cache", "/cache", 90 * GIB, 100 * GIB)), gpus.Gpus())
EMBEDDED = EngineEntry("embedded", "Built in", "Reads here.", "m:C")
ASCEND = EngineEntry("ascend", "Ascend NPU", "Reads on an NPU.", "m:C")


def check(report: ascend.Report) -> None:
    """Every problem and warning of REPORT stands at exactly one row, where one looks for it."""
    found = diagnosis.Diagnosis(
        MACHINE, (Examination(EMBEDDED), Examination(ASCEND)), "ascend", (), report)
    groups = rows.groups(found)
    shown = [row for group in groups for row in group.rows]
    told = Counter(problem for row in shown for problem in row.problems)
    assert set(told) == {*report.problems, *report.warnings}
    assert set(told.values()) == {1}
    for row in shown:
        if row.problems:
            assert row.mark in (Mark.DOUBT, Mark.WRONG)
            assert (row.mark is Mark.WRONG) == bool({*row.problems} & {*report.problems})
    # None is left over.
    assert "Else" not in [row.title for row in shown]
    assert rows.verdict(found, groups).mark is (Mark.GOOD if report.well else Mark.WRONG)
