"""Does memory grow with the number of pages? Prints JSON.

A 20-page and a 2,000-page PDF of the same pages (text, rules, a picture of its own on each page)
are drawn from the first to the last page, with words, by a rasterizer in a fresh process each.
``ratio`` is the peak of application and drawing processes together, long over short. The bar is
1.15. FILE arguments are drawn as well, for their own peaks.

    python -m tests.perf.intake_memory [FILE …]
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = (20, 2000)
PROCESSES = 2
_WORDS = "a page of words that are drawn in a window of bounded memory, one by one"


def make(path: Path, pages: int) -> None:
    """A PDF of PAGES pages, no two of them alike: 40 lines of text, 40 rules, a picture."""
    chance = random.Random(1)
    bodies = [b"<</Type/Catalog/Pages 2 0 R>>", b"",
              b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"]
    kids = []
    for page in range(pages):
        content = "q 300 0 0 180 60 12 cm /I Do Q\n" + "\n".join(
            f"BT /F 10 Tf 60 {y} Td ({page}: {''.join(chance.choices(_WORDS, k=70))}) Tj ET "
            f"60 {y - 3} m 540 {y - 3} l S" for y in range(760, 200, -14))
        bodies.append(_stream(b"/Type/XObject/Subtype/Image/Width 90/Height 60"
                              b"/BitsPerComponent 8/ColorSpace/DeviceRGB",
                              chance.randbytes(90 * 60 * 3)))
        bodies.append(_stream(b"", content.encode()))
        last = len(bodies)
        bodies.append(b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Contents %d 0 R"
                      b"/Resources<</Font<</F 3 0 R>>/XObject<</I %d 0 R>>>>>>" % (last, last - 1))
        kids.append(b"%d 0 R" % len(bodies))
    bodies[1] = b"<</Type/Pages/Count %d/Kids[%s]>>" % (pages, b" ".join(kids))
    with open(path, "wb") as file:
        file.write(b"%PDF-1.7\n")
        places = []
        for number, body in enumerate(bodies, 1):
            places.append(file.tell())
            file.write(b"%d 0 obj\n%s\nendobj\n" % (number, body))
        table = file.tell()
        file.write(b"xref\n0 %d\n0000000000 65535 f \n" % (len(bodies) + 1))
        file.writelines(b"%010d 00000 n \n" % place for place in places)
        file.write(b"trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n"
                   % (len(bodies) + 1, table))


def _stream(entries: bytes, data: bytes) -> bytes:
    packed = zlib.compress(data, 1)
    return (b"<<%s/Filter/FlateDecode/Length %d>>stream\n" % (entries, len(packed))
            + packed + b"\nendstream")


def peak_mb(pid: int) -> float:
    """The most memory PID has held, in MB."""
    for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    raise OSError(f"no VmHWM of {pid}")


def draw(path: Path) -> dict[str, float]:
    """Draw every page of PATH; peaks of this process and of its drawing processes in MB."""
    from desktop.intake.model import RenderRequest
    from desktop.intake.rasterizer import Rasterizer

    with tempfile.TemporaryDirectory() as folder:
        rasterizer = Rasterizer(Path(folder), processes=PROCESSES)
        pages = rasterizer.open(path).result().pages
        peaks: dict[int, float] = {}
        begun = time.perf_counter()
        waiting = []
        for number in range(1, pages + 1):
            waiting.append(rasterizer.render(RenderRequest(str(path), number, words=True)))
            if len(waiting) == 2 * PROCESSES or number == pages:
                for future in waiting:
                    future.result().delete()
                waiting.clear()
                peaks.update({pid: peak_mb(pid) for pid in rasterizer.pids()})
        seconds = time.perf_counter() - begun
        rasterizer.close()
    # Processes that were replaced count by the largest ones that lived side by side.
    drawing = sum(sorted(peaks.values())[-PROCESSES:])
    own = peak_mb(os.getpid())
    return {"pages": pages, "application_mb": round(own, 1), "drawing_mb": round(drawing, 1),
            "total_mb": round(own + drawing, 1), "processes": len(peaks),
            "pages_per_s": round(pages / seconds, 1)}


def measured(path: Path) -> dict[str, float]:
    """:func:`draw` in a process of its own."""
    done = subprocess.run([sys.executable, __file__, "--draw", str(path)], cwd=ROOT, check=True,
                          stdout=subprocess.PIPE)
    result: dict[str, float] = json.loads(done.stdout)
    return result


def main(arguments: list[str]) -> None:
    """Measure and print."""
    if arguments[:1] == ["--draw"]:
        sys.path.insert(0, str(ROOT))
        print(json.dumps(draw(Path(arguments[1]))))
        return
    with tempfile.TemporaryDirectory() as folder:
        runs = []
        for pages in PAGES:
            path = Path(folder) / f"{pages}.pdf"
            make(path, pages)
            runs.append(measured(path))
    print(json.dumps({
        "bar": 1.15,
        "ratio": round(runs[1]["total_mb"] / runs[0]["total_mb"], 3),
        "short": runs[0],
        "long": runs[1],
        "files": {Path(name).name: measured(Path(name).resolve()) for name in arguments},
    }, indent=1))


if __name__ == "__main__":
    main(sys.argv[1:])
