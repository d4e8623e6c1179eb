"""Images of every kind become upright 8-bit RGB pixels that look as they should."""

from __future__ import annotations

import io
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageCms, ImageDraw, ImageOps

from desktop.intake.errors import ImageDamaged, ImageTooLarge, Unreadable
from desktop.intake.images import ImageSource
from tests.intake.drawing import bitmap, difference, image, source

_TURNS = {
    1: None, 2: Image.Transpose.FLIP_LEFT_RIGHT, 3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM, 5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_90, 7: Image.Transpose.TRANSVERSE, 8: Image.Transpose.ROTATE_270,
}
"""What a camera does to an upright picture before it writes the orientation."""


def _card(mode: str = "RGB", size: tuple[int, int] = (200, 120)) -> Image.Image:
    """A white card with a different colour in each corner, so that any turn shows."""
    card = Image.new("RGB", size, "white")
    draw = ImageDraw.Draw(card)
    width, height = size
    draw.rectangle((0, 0, 60, 30), fill="black")
    draw.rectangle((width - 40, 0, width, 30), fill=(200, 0, 0))
    draw.rectangle((0, height - 30, 40, height), fill=(0, 0, 200))
    return card.convert(mode)


# --- upright ----------------------------------------------------------------------------------


@pytest.mark.parametrize("orientation", range(1, 9))
def test_photographs_are_turned_upright(samples: Path, orientation: int) -> None:
    upright = image(samples / "exif_1.jpg")
    assert difference(image(samples / f"exif_{orientation}.jpg"), upright) < 3


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize(("mode", "compression"), [
    ("1", "group4"), ("L", "tiff_lzw"), ("RGB", "raw"), ("RGB", "jpeg"), ("P", "raw"),
    ("RGBA", "tiff_deflate"), ("CMYK", "raw"), ("I;16", "raw"), ("LA", "raw")])
def test_tiffs_are_turned_once(tmp_path: Path, orientation: int, mode: str,
                               compression: str) -> None:
    if mode == "I;16":
        card = Image.fromarray(np.asarray(_card("L")).astype(np.uint16) * 257)
    else:
        card = _card(mode)
    plain, turned = tmp_path / "plain.tif", tmp_path / "turned.tif"
    card.save(plain, compression=compression)
    turn = _TURNS[orientation]
    (card if turn is None else card.transpose(turn)).save(
        turned, compression=compression, tiffinfo={274: orientation})
    assert difference(image(turned), image(plain)) < (8 if compression == "jpeg" else 0.5)


@pytest.mark.parametrize("suffix", ["png", "webp", "avif", "heic"])
@pytest.mark.parametrize("orientation", [3, 5, 6, 8])
def test_other_formats_are_turned_once(tmp_path: Path, suffix: str, orientation: int) -> None:
    card, exif = _card(), Image.Exif()
    exif[0x0112] = orientation
    turn = _TURNS[orientation]
    assert turn is not None
    path = tmp_path / f"x.{suffix}"
    card.transpose(turn).save(path, quality=95, exif=exif.tobytes())
    assert difference(image(path), card) < 6


def test_a_palette_keeps_its_orientation(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    _card("P").transpose(_TURNS[6]).save(tmp_path / "x.png", exif=exif)  # type: ignore[arg-type]
    assert difference(image(tmp_path / "x.png"), _card()) < 6


@pytest.mark.parametrize("clockwise", [0, 90, 180, 270])
def test_a_further_turn_is_exact(samples: Path, clockwise: int) -> None:
    upright = image(samples / "bilevel.png")
    turned = image(samples / "bilevel.png", clockwise=clockwise)
    assert turned.size == (upright.size if clockwise % 180 == 0 else upright.size[::-1])
    assert difference(turned.rotate(clockwise, expand=True), upright) == 0


# --- colours ----------------------------------------------------------------------------------


def test_formats_of_one_card_agree(samples: Path) -> None:
    sizes = {name: image(samples / f"card.{name}").size for name in ("webp", "avif", "heic", "jp2")}
    assert len(set(sizes.values())) == 1
    cards = [image(samples / f"card.{name}") for name in sizes]
    assert all(difference(cards[0], other) < 6 for other in cards[1:])


def test_cmyk_is_not_inverted(samples: Path) -> None:
    card = np.asarray(image(samples / "cmyk.jpg"))
    ground, bar = card[5, 5], card[32, 80]
    assert (ground[:2] > 230).all()
    assert 120 < ground[2] < 245, "pale yellow"
    assert bar[0] > 180, "red"
    assert bar[1] < 110


def test_a_profile_of_another_colour_space_is_ignored(tmp_path: Path) -> None:
    path = tmp_path / "x.tif"
    lab = ImageCms.ImageCmsProfile(ImageCms.createProfile("LAB")).tobytes()
    Image.new("CMYK", (300, 300), (0, 255, 255, 0)).save(path, icc_profile=lab)
    assert image(path).getpixel((10, 10)) == (255, 0, 0)


def test_an_embedded_profile_is_applied_and_a_broken_one_ignored(tmp_path: Path) -> None:
    swapped = _profile_that_swaps_red_and_blue()
    plain, other, broken = (tmp_path / name for name in ("plain.png", "other.png", "broken.png"))
    _card().save(plain)
    _card().save(other, icc_profile=swapped)
    _card().save(broken, icc_profile=b"no profile at all")
    assert difference(image(broken), image(plain)) == 0
    red = image(other).getpixel((190, 10))
    assert isinstance(red, tuple)
    assert red[2] > red[0]


def _profile_that_swaps_red_and_blue() -> bytes:
    """sRGB with the primaries of red and blue exchanged."""
    profile = bytearray(ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes())
    count = int.from_bytes(profile[128:132], "big")
    for at in range(132, 132 + 12 * count, 12):
        if profile[at:at + 4] == b"rXYZ":
            profile[at:at + 4] = b"bXYZ"
        elif profile[at:at + 4] == b"bXYZ":
            profile[at:at + 4] = b"rXYZ"
    # Under another name, or it would be taken for sRGB itself.
    name = "sRGB".encode("utf-16-be")
    at = profile.find(name)
    while at >= 0:
        profile[at:at + len(name)] = "swap".encode("utf-16-be")
        at = profile.find(name)
    return bytes(profile)


def test_lab_becomes_rgb(tmp_path: Path) -> None:
    srgb = ImageCms.createProfile("sRGB")
    transform = ImageCms.buildTransform(srgb, ImageCms.createProfile("LAB"), "RGB", "LAB")
    lab = ImageCms.applyTransform(_card(), transform)
    assert lab is not None
    lab.save(tmp_path / "x.tif")
    assert difference(image(tmp_path / "x.tif"), _card()) < 3


def test_sixteen_bits(samples: Path) -> None:
    assert difference(image(samples / "grey16.png"), image(samples / "bilevel.png")) < 8


@pytest.mark.parametrize(("bits", "factor"), [(16, 257), (12, 16), (8, 1)])
def test_deep_greys_use_the_range_they_have(tmp_path: Path, bits: int, factor: int) -> None:
    grey = np.asarray(_card("L")).astype(np.uint16) * factor
    Image.fromarray(grey).save(tmp_path / "x.tif")
    found = image(tmp_path / "x.tif")
    assert difference(found, _card("L")) < 2, f"{bits} bits"


@pytest.mark.parametrize("mode", ["I", "F"])
def test_wide_and_real_numbers(tmp_path: Path, mode: str) -> None:
    values = np.asarray(_card("L"))
    wide = values.astype(np.int32) * 1000 - 5 if mode == "I" else values.astype(np.float32) / 255
    Image.fromarray(wide).save(tmp_path / "x.tif")
    assert difference(image(tmp_path / "x.tif"), _card("L")) < 2


def test_numbers_that_are_none(tmp_path: Path) -> None:
    values = np.asarray(_card("L")).astype(np.float32) / 255
    values[0, 0], values[1, 1] = np.nan, np.inf
    Image.fromarray(values).save(tmp_path / "x.tif")
    assert difference(image(tmp_path / "x.tif"), _card("L")) < 2


# --- transparency -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["black_on_transparent.png", "white_on_transparent.png"])
def test_writing_on_a_transparent_ground_can_be_read(samples: Path, name: str) -> None:
    grey = np.asarray(image(samples / name).convert("L")).astype(int)
    assert grey.max() - grey.min() > 200
    # The bar of the card in its upper left corner, and the ground beside it.
    assert abs(grey[32, 80] - grey[32, 400]) > 200


@pytest.mark.parametrize(("ink", "ground"), [
    ((0, 0, 0), 255), ((90, 90, 90), 255), ((255, 255, 255), 0), ((240, 240, 200), 0)])
def test_the_ground_is_white_unless_the_content_would_vanish(
        tmp_path: Path, ink: tuple[int, int, int], ground: int) -> None:
    picture = Image.new("RGBA", (300, 100), (0, 0, 0, 0))
    ImageDraw.Draw(picture).text((20, 30), "Some words", fill=(*ink, 255), font_size=40)
    picture.save(tmp_path / "x.png")
    assert image(tmp_path / "x.png").getpixel((2, 2)) == (ground,) * 3


def test_black_and_white_words_together_get_a_grey_ground(tmp_path: Path) -> None:
    picture = Image.new("RGBA", (300, 200), (0, 0, 0, 0))
    draw = ImageDraw.Draw(picture)
    draw.text((20, 30), "Some words", fill=(0, 0, 0, 255), font_size=40)
    draw.text((20, 110), "Some words", fill=(255, 255, 255, 255), font_size=40)
    picture.save(tmp_path / "x.png")
    assert image(tmp_path / "x.png").getpixel((2, 2)) == (128, 128, 128)


def test_white_words_on_a_box_of_their_own_stay_on_white(tmp_path: Path) -> None:
    picture = Image.new("RGBA", (300, 200), (0, 0, 0, 0))
    draw = ImageDraw.Draw(picture)
    draw.rectangle((30, 30, 270, 170), fill=(0, 0, 120, 255))
    draw.text((60, 80), "Words", fill=(255, 255, 255, 255), font_size=40)
    picture.save(tmp_path / "x.png")
    assert image(tmp_path / "x.png").getpixel((2, 2)) == (255, 255, 255)


def test_transparent_palettes_and_colour_keys(tmp_path: Path, samples: Path) -> None:
    assert image(samples / "palette.png").getpixel((2, 2)) == (255, 255, 255)
    for mode, key in (("L", 255), ("RGB", (255, 255, 255)), ("1", 255)):
        _card(mode).save(tmp_path / "key.png", transparency=key)
        assert difference(image(tmp_path / "key.png"), _card(mode)) < 1, mode
    _card("L").convert("LA").save(tmp_path / "la.png")
    assert difference(image(tmp_path / "la.png"), _card("L")) < 1
    Image.new("RGBA", (5, 5), (0, 0, 0, 0)).save(tmp_path / "nothing.png")
    assert image(tmp_path / "nothing.png").getextrema() == ((255, 255),) * 3


# --- frames -----------------------------------------------------------------------------------


def test_every_frame_of_a_tiff_is_a_page(samples: Path) -> None:
    assert source(samples / "frames.tif").pages == 3
    assert [image(samples / "frames.tif", page).size for page in (3, 1, 2)] == [
        (480, 320), (640, 240), (640, 240)]


def test_thumbnails_inside_a_tiff_are_no_pages(tmp_path: Path) -> None:
    path = tmp_path / "x.tif"
    frames = [_card(), _card("RGB", (50, 30)), _card("L")]
    for frame, kind in zip(frames, (0, 1, 2), strict=True):
        frame.encoderinfo = {"tiffinfo": {254: kind}}
    frames[0].save(path, save_all=True, append_images=frames[1:], tiffinfo={254: 0})
    assert source(path).pages == 2
    assert image(path, 2).size == (200, 120)


@pytest.mark.parametrize("suffix", ["gif", "png", "webp", "avif"])
def test_of_what_moves_the_first_frame_counts(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"x.{suffix}"
    _card().save(path, save_all=True, append_images=[ImageOps.invert(_card())], quality=95)
    assert source(path).pages == 1
    assert difference(image(path), _card()) < 6


# --- sizes ------------------------------------------------------------------------------------


def test_own_pixels_whatever_the_resolution_asked_for(samples: Path) -> None:
    drawn = bitmap(samples / "scan.jpg", dpi=600)
    with Image.open(samples / "scan.jpg") as stored:
        assert (drawn.width, drawn.height) == stored.size
    assert drawn.dpi == pytest.approx(120)
    assert not drawn.lowered


@pytest.mark.parametrize("name", ["scan.jpg", "scan.png", "exif_6.jpg", "frames.tif"])
def test_the_pixel_cap_is_kept(samples: Path, name: str) -> None:
    full, small = bitmap(samples / name), bitmap(samples / name, max_pixels=40_000)
    assert 20_000 < small.width * small.height <= 40_000
    assert small.lowered
    assert small.width / small.height == pytest.approx(full.width / full.height, rel=0.02)
    if full.dpi:
        assert small.dpi == pytest.approx(full.dpi * small.width / full.width, rel=0.02)


def test_thumbnails(samples: Path) -> None:
    thumbnail = bitmap(samples / "exif_6.jpg", max_side=64)
    assert max(thumbnail.width, thumbnail.height) == 64
    assert thumbnail.width > thumbnail.height
    assert not thumbnail.lowered
    assert image(samples / "bilevel.png", max_side=5000).size == (640, 240), "never enlarged"


def test_one_pixel(tmp_path: Path) -> None:
    Image.new("RGBA", (1, 1), (9, 9, 9, 0)).save(tmp_path / "x.png")
    assert image(tmp_path / "x.png").size == (1, 1)
    assert image(tmp_path / "x.png", max_side=16).size == (1, 1)


def test_extreme_shapes(tmp_path: Path) -> None:
    Image.new("L", (1, 40_000), 7).save(tmp_path / "x.png")
    assert image(tmp_path / "x.png", max_side=100).size == (1, 100)
    assert bitmap(tmp_path / "x.png", max_pixels=1000).height <= 1000


def test_fax_lines_are_given_square_pixels(tmp_path: Path) -> None:
    _card("1", (200, 120)).save(tmp_path / "x.tif", compression="group3", dpi=(204, 98))
    drawn = bitmap(tmp_path / "x.tif")
    assert (drawn.width, drawn.height) == (200, 250)
    assert drawn.dpi == pytest.approx(204)


def test_a_claim_of_gigapixels_is_refused_before_decoding(tmp_path: Path) -> None:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return (struct.pack(">I", len(data)) + kind + data
                + struct.pack(">I", zlib.crc32(kind + data)))
    header = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)
    path = tmp_path / "bomb.png"
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header)
                     + chunk(b"IDAT", zlib.compress(bytes(1000))) + chunk(b"IEND", b""))
    with pytest.raises(ImageTooLarge) as caught:
        source(path)
    assert "60000 × 60000" in caught.value.problem().message


def test_a_large_jpeg_is_decoded_small(tmp_path: Path) -> None:
    path = tmp_path / "x.jpg"
    _card("RGB", (8000, 6000)).save(path)
    # 8000 × 6000 pixels decoded whole would be over this limit, eight times smaller is not.
    assert ImageSource(str(path).encode(), 100).pages == 1
    assert max(image(path, max_side=700).size) == 700


# --- damage -----------------------------------------------------------------------------------


def _cut(data: bytes, share: float) -> bytes:
    return data[:int(len(data) * share)]


@pytest.mark.parametrize("name", ["scan.jpg", "scan.png", "bilevel.png"])
def test_what_there_is_of_a_cut_file_is_shown_and_flagged(samples: Path, tmp_path: Path,
                                                          name: str) -> None:
    whole = bitmap(samples / name)
    path = tmp_path / name
    path.write_bytes(_cut((samples / name).read_bytes(), 0.7))
    drawn = bitmap(path)
    assert drawn.damage
    assert not whole.damage
    top = (0, 0, whole.width, whole.height // 3)
    assert difference(drawn.image().crop(top), whole.image().crop(top)) < 1
    # It does not loosen what comes after.
    assert not bitmap(samples / name).damage


def test_pixels_that_cannot_be_decoded(samples: Path, tmp_path: Path) -> None:
    data = (samples / "card.webp").read_bytes()
    path = tmp_path / "x.webp"
    path.write_bytes(_cut(data, 0.3))
    with pytest.raises((ImageDamaged, Unreadable)):
        bitmap(path)


@pytest.mark.parametrize("data", [
    b"\x89PNG\r\n\x1a\n" + bytes(60), b"\xff\xd8\xff\xe0" + bytes(60), b"II*\0" + bytes(60),
    b"GIF89a", b"RIFF\0\0\0\0WEBPVP8 ", b"\0\0\0\x18ftypheic" + bytes(40),
    b"\0\0\0\x0cjP  \r\n\x87\n" + bytes(40)])
def test_headers_without_an_image(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "x"
    path.write_bytes(data)
    with pytest.raises(Unreadable):
        source(path)


def test_written_as_ppm(samples: Path, tmp_path: Path) -> None:
    drawn = bitmap(samples / "card.bmp")
    drawn.write(str(tmp_path / "x.ppm").encode())
    with Image.open(io.BytesIO((tmp_path / "x.ppm").read_bytes())) as read:
        assert read.mode == "RGB"
        assert difference(read, drawn.image()) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["x.ppm"]
