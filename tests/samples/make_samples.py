"""Makes the small test documents in this folder: ``python tests/samples/make_samples.py``.

All are of the project's own making. ``README.md`` beside them says what each is; the password of
``encrypted.pdf`` is ``verso``.
"""

from __future__ import annotations

import io
import random
import sys
import zipfile
from pathlib import Path

import pillow_heif
import pymupdf
from PIL import Image, ImageChops, ImageDraw, ImageFilter, ImageFont

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "resources" / "samples" / "sample.pdf"
WORDS = "The quick brown fox jumps over the lazy dog."
PASSWORD = "verso"


def card(text: str = WORDS, size: tuple[int, int] = (640, 240), ink: object = "black",
         ground: object = "white", mode: str = "RGB") -> Image.Image:
    """A picture with a heading bar in the upper left corner (to see how it is turned) and TEXT."""
    image = Image.new(mode, size, ground)  # type: ignore[arg-type]
    draw = ImageDraw.Draw(image)
    draw.rectangle((20, 20, 140, 44), fill=ink)  # type: ignore[arg-type]
    draw.multiline_text((20, 80), text, fill=ink,  # type: ignore[arg-type]
                        font=ImageFont.load_default(28), spacing=10)
    return image


def rendered(page: int, dpi: int) -> Image.Image:
    with pymupdf.open(SAMPLE) as document:
        pixmap = document[page].get_pixmap(dpi=dpi)
    return Image.frombytes("RGB", (pixmap.width, pixmap.height), pixmap.samples)


def scanned(image: Image.Image, angle: float = 0.6) -> Image.Image:
    """IMAGE as a flatbed would give it: a little askew, soft, uneven, with specks; grey."""
    grey = image.convert("L").rotate(angle, Image.Resampling.BICUBIC, fillcolor=255)
    grey = grey.filter(ImageFilter.GaussianBlur(0.6))
    shade = Image.linear_gradient("L").resize(grey.size).point(lambda v: 232 + v // 14)
    grey = ImageChops.multiply(grey, shade)
    dice, draw = random.Random(7), ImageDraw.Draw(grey)
    for _ in range(120):
        x, y = dice.randrange(grey.width), dice.randrange(grey.height)
        draw.ellipse((x, y, x + 1, y + 1), fill=dice.randrange(90, 200))
    return grey


def images(to: Path) -> None:
    scan = scanned(rendered(0, 120))
    scan.quantize(16).save(to / "scan.png", optimize=True)
    scan.save(to / "scan.jpg", quality=60, dpi=(120, 120))
    scan.rotate(90, expand=True).save(to / "scan_sideways.jpg", quality=60)
    scanned(rendered(1, 120), -0.4).quantize(16).save(to / "scan_table.png", optimize=True)

    for orientation, turn in {
        1: None, 2: Image.Transpose.FLIP_LEFT_RIGHT, 3: Image.Transpose.ROTATE_180,
        4: Image.Transpose.FLIP_TOP_BOTTOM, 5: Image.Transpose.TRANSPOSE,
        6: Image.Transpose.ROTATE_90, 7: Image.Transpose.TRANSVERSE,
        8: Image.Transpose.ROTATE_270,
    }.items():
        stored = card() if turn is None else card().transpose(turn)
        exif = Image.Exif()
        exif[0x0112] = orientation
        stored.save(to / f"exif_{orientation}.jpg", quality=70, exif=exif)

    frames = [card("Frame one", mode="1", ink=0, ground=1), card("Frame two").convert("L"),
              card("Frame three", (480, 320), "navy", "lightyellow")]
    frames[0].save(to / "frames.tif", save_all=True, append_images=frames[1:],
                   compression="tiff_adobe_deflate", dpi=(150, 150))
    card("First frame").convert("P").save(
        to / "animated.gif", save_all=True, append_images=[card("Second frame").convert("P")])

    card(ink=(0, 255, 255, 0), ground=(0, 0, 60, 0), mode="CMYK").save(to / "cmyk.jpg", quality=70)
    card(ink=(255, 255, 255, 255), ground=(0, 0, 0, 0), mode="RGBA").save(
        to / "white_on_transparent.png")
    card(ink=(0, 0, 0, 255), ground=(255, 255, 255, 0), mode="RGBA").save(
        to / "black_on_transparent.png")
    card().convert("L").convert("I;16").point(lambda v: v * 257).save(to / "grey16.png")
    card(mode="1", ink=0, ground=1).save(to / "bilevel.png")
    palette = card(ink="darkred").quantize(4)
    palette.info["transparency"] = 0
    palette.save(to / "palette.png")
    card(size=(560, 140)).convert("L").save(to / "card.bmp")
    card().save(to / "card.webp", quality=60)
    card().save(to / "card.jp2", quality_mode="rates", quality_layers=[40])
    card().save(to / "card.avif", quality=50)
    pillow_heif.from_pillow(card()).save(to / "card.heic", quality=40)
    Image.new("RGB", (620, 877), "white").save(to / "blank.png")


def documents(to: Path) -> None:
    plain = {"garbage": 4, "deflate": True, "no_new_id": True}
    with pymupdf.open() as pdf:
        pdf.new_page(width=300, height=200).insert_text((30, 60), WORDS[:27], fontsize=14)
        pdf.new_page(width=300, height=200).insert_text((30, 60), "Second page", fontsize=14)
        pdf.save(to / "encrypted.pdf", encryption=pymupdf.PDF_ENCRYPT_AES_256,
                 user_pw=PASSWORD, owner_pw="owner", garbage=4, deflate=True)

    whole = SAMPLE.read_bytes()
    (to / "broken.pdf").write_bytes(whole[: len(whole) // 3])
    (to / "header_only.pdf").write_bytes(b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n")
    (to / "empty.pdf").write_bytes(b"")

    with pymupdf.open() as pdf:
        pdf.new_page()
        page = pdf.new_page()
        page.insert_text((297, 800), "2", fontsize=9)
        pdf.save(to / "blank.pdf", **plain)

    with pymupdf.open() as pdf:  # turned, and cropped to the part that begins at (100, 100)
        page = pdf.new_page(width=600, height=400)
        page.insert_text((120, 160), "Inside the crop box", fontsize=18)
        page.insert_text((20, 40), "Outside", fontsize=18)
        page.set_cropbox(pymupdf.Rect(100, 100, 500, 300))
        page.set_rotation(90)
        pdf.save(to / "rotated_cropped.pdf", **plain)

    for name, angle in (("scanned.pdf", 0), ("scanned_sideways.pdf", 90)):
        stream = io.BytesIO()
        scanned(rendered(1, 110)).rotate(angle, expand=True).save(stream, "JPEG", quality=50)
        with pymupdf.open() as pdf:
            size = (595, 842) if angle == 0 else (842, 595)
            page = pdf.new_page(width=size[0], height=size[1])
            page.insert_image(page.rect, stream=stream.getvalue())
            pdf.save(to / name, **plain)

    with pymupdf.open() as pdf:  # a scan whose hidden text layer says something else
        page = pdf.new_page(width=400, height=200)
        stream = io.BytesIO()
        card(size=(800, 400)).save(stream, "JPEG", quality=50)
        page.insert_image(page.rect, stream=stream.getvalue())
        page.insert_text((10, 58), "Qbd wzzi krown fpx jvnps oxr tge lbzy dqg zzz", fontsize=13,
                         render_mode=3)
        pdf.save(to / "garbled_text_layer.pdf", **plain)

    with pymupdf.open() as pdf:
        for number in range(1, 21):
            pdf.new_page(width=300, height=200).insert_text(
                (30, 60), f"This is page {number} of twenty.", fontsize=14)
        pdf.save(to / "twenty_pages.pdf", **plain)

    with pymupdf.open() as pdf:
        page = pdf.new_page(width=400, height=240)
        page.insert_text((40, 60), "三个山谷一年的雨", fontname="china-s", fontsize=20)
        page.insert_text((40, 100), "上谷的雨几乎是下谷的两倍。", fontname="china-s", fontsize=14)
        pdf.save(to / "chinese.pdf", **plain)


def odd_files(to: Path) -> None:
    (to / "png_inside.jpg").write_bytes((to / "bilevel.png").read_bytes())
    (to / "pdf_inside").write_bytes((to / "blank.pdf").read_bytes())
    (to / "not_an_image.png").write_text("This is text, whatever its name says.\n")
    (to / "drawing.svg").write_text(
        '<svg xmlns="http://www.w3.org/2000/svg" width="320" height="120">'
        '<text x="20" y="60" font-size="24">A drawing with words</text></svg>\n')
    with zipfile.ZipFile(to / "comic.cbz", "w") as comic:
        for number in (1, 2):
            stream = io.BytesIO()
            card(f"Panel {number}").save(stream, "PNG")
            comic.writestr(zipfile.ZipInfo(f"{number}.png"), stream.getvalue())


def make(to: Path) -> None:
    """Write all documents into the folder TO."""
    to.mkdir(parents=True, exist_ok=True)
    images(to)
    documents(to)
    odd_files(to)


if __name__ == "__main__":
    make(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
