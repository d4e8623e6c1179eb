"""What the engine's processes write is passed on and kept."""

from __future__ import annotations

import subprocess
import sys
import textwrap

SCRIPT = textwrap.dedent("""
    import os, subprocess, sys, time
    from desktop.engines.vllm.output import OutputTail
    heard = []
    tail = OutputTail(heard.append)
    tail.begin()
    print("first from here", flush=True)
    subprocess.run([sys.executable, "-c",
                    "import sys; print('child out'); print('child err', file=sys.stderr)"])
    os.write(2, b"50%\\r100%\\nwithout end \\xff")
    lines = tail.settled(60)
    tail.end()
    print("after", flush=True)
    deadline = time.monotonic() + 60
    while len(heard) < 6 and time.monotonic() < deadline:
        time.sleep(0.01)
    print("KEPT", sorted(tail.lines()), "SETTLED", len(lines), "HEARD", len(heard), flush=True)
""")


def test_lines_of_this_process_and_its_children() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, timeout=240)
    out, err = done.stdout.decode(), done.stderr.decode(errors="replace")
    assert done.returncode == 0, err
    assert "first from here\n" in out
    assert "child out\n" in out
    assert "child err\n" in err
    assert "without end" in err
    assert ("KEPT ['100%', '50%', 'child err', 'child out', 'first from here', "
            "'without end �'] SETTLED 5 HEARD 6") in out
    assert out.index("after") > out.index("child out")


SLOWLY = textwrap.dedent("""
    import os, sys, time
    from desktop.engines.vllm.output import OutputTail
    tail = OutputTail(lambda line: time.sleep(0.3))
    tail.begin()
    os.write(2, b"one\\ntwo\\nthree\\n")
    lines = tail.settled(60)
    tail.end()
    print("SETTLED", lines, flush=True)
""")


def test_what_is_written_and_not_read_yet_is_waited_for() -> None:
    """As on a machine so busy that whoever reads has no turn for a while."""
    done = subprocess.run([sys.executable, "-c", SLOWLY], capture_output=True, timeout=240)
    assert "SETTLED ['one', 'two', 'three']" in done.stdout.decode(), done.stderr
