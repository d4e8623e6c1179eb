"""PDFs written by hand, for what no library would write."""

from __future__ import annotations

import zlib
from pathlib import Path


def stream(entries: str, data: bytes, *, packed: bool = True) -> bytes:
    """A stream object; DATA is compressed unless PACKED says that ENTRIES tell how it is."""
    if packed:
        data = zlib.compress(data, 9)
        entries += "/Filter/FlateDecode"
    return (f"<<{entries}/Length {len(data)}>>stream\n".encode("ascii") + data + b"\nendstream")


def write(path: Path, *bodies: bytes | str) -> Path:
    """A PDF of these objects, numbered from 1; the first is the catalogue."""
    out = bytearray(b"%PDF-1.7\n")
    places = []
    for number, body in enumerate(bodies, 1):
        places.append(len(out))
        data = body if isinstance(body, bytes) else body.encode("ascii")
        out += b"%d 0 obj\n%s\nendobj\n" % (number, data)
    table = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(bodies) + 1)
    out += b"".join(b"%010d 00000 n \n" % place for place in places)
    out += (b"trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n"
            % (len(bodies) + 1, table))
    path.write_bytes(out)
    return path


def one_page(path: Path, content: str, *more: bytes | str, page: str = "",
             resources: str = "") -> Path:
    """A page that draws CONTENT with Helvetica as /F; further objects begin with number 6."""
    if "/MediaBox" not in page:
        page += "/MediaBox[0 0 300 400]"
    return write(
        path,
        "<</Type/Catalog/Pages 2 0 R>>",
        "<</Type/Pages/Count 1/Kids[3 0 R]>>",
        f"<</Type/Page/Parent 2 0 R{page}/Contents 4 0 R"
        f"/Resources<</Font<</F 5 0 R>>{resources}>>>>",
        stream("", content.encode("latin-1")),
        "<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>",
        *more,
    )


def slow(path: Path, levels: int) -> Path:
    """A page whose drawing takes ten times as long with each of LEVELS."""
    forms = []
    for level in range(levels):
        last = level == levels - 1
        content = "0 0 40 40 re f " * 10 if last else f"/X{level + 1} Do " * 10
        forms.append(stream("/Type/XObject/Subtype/Form/BBox[0 0 300 400]/Resources<</XObject<<"
                            + ("" if last else f"/X{level + 1} {level + 7} 0 R") + ">>>>",
                            content.encode("ascii")))
    return one_page(path, "/X0 Do", *forms, resources="/XObject<</X0 6 0 R>>")


def picture(path: Path, side: int) -> Path:
    """A small file that holds a black picture of SIDE × SIDE pixels in colour, and a word."""
    packer = zlib.compressobj(9)
    data = b"".join(packer.compress(bytes(side * 3)) for _row in range(side)) + packer.flush()
    return one_page(
        path, "BT /F 20 Tf 20 370 Td (word) Tj ET q 200 0 0 200 50 50 cm /I Do Q",
        stream(f"/Type/XObject/Subtype/Image/Width {side}/Height {side}/BitsPerComponent 8"
               "/ColorSpace/DeviceRGB/Filter/FlateDecode", data, packed=False),
        resources="/XObject<</I 6 0 R>>")
