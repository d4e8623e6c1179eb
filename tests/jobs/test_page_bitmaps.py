"""The bitmap of a page, whoever asks for it and however it is turned."""

from __future__ import annotations

from pathlib import Path

from desktop.jobs.events import (
    PageState,
)
from tests.jobs.conftest import FIGURE, PATIENCE, SLOW, Pdf, Player


def test_the_bitmap_of_a_page_in_flight_tells_what_the_drawn_one_does(
        play: Player, tmp_path: Path) -> None:
    from PIL import Image

    source = tmp_path / "cut.jpg"
    Image.effect_noise((400, 300), 80).convert("RGB").save(source)
    source.write_bytes(source.read_bytes()[:-2000])
    p = play({"pages": [SLOW]})
    p.add(source)
    p.session.start()
    p.heard.until_page("1-1", PageState.STREAMING)
    in_flight = p.session.bitmap("1-1").result(PATIENCE)
    p.session.stop()
    assert p.session.wait(PATIENCE)
    anew = p.session.bitmap("1-1").result(PATIENCE)
    assert in_flight.damaged
    assert anew.damaged
    assert (in_flight.width, in_flight.height) == (anew.width, anew.height) == (400, 300)
    assert Path(in_flight.image).read_bytes() == Path(anew.image).read_bytes()
    for rendered in (in_flight, anew):
        rendered.delete()


def test_a_turned_page_is_turned_everywhere(play: Player, pdf: Pdf) -> None:
    p = play({"pages": [{"text": FIGURE, "rate": 0, "clockwise": 90}]})
    p.add(pdf(1))
    assert p.session.wait(PATIENCE)
    before = p.session.bitmap("1-1").result(PATIENCE)
    p.finish()
    result = p.session.page_result("1-1").result(PATIENCE)
    assert (result.view.rotation, result.view.width, result.view.height) == (90, 560, 400)
    after = p.session.bitmap("1-1").result(PATIENCE)
    assert (before.width, before.height) == (400, 560)
    assert (after.width, after.height) == (560, 400)
    small = p.session.thumbnail("1-1", 100).result(PATIENCE)
    assert (small.width, small.height) in ((100, 71), (100, 72))

    from PIL import Image
    with Image.open(before.image) as drawn, Image.open(after.image) as turned, \
            Image.open(result.crops["b2"]) as crop:
        expected = drawn.transpose(Image.Transpose.ROTATE_270)
        assert turned.tobytes() == expected.tobytes()
        assert crop.tobytes() == expected.crop((56, 40, 281, 161)).resize(crop.size).tobytes()
    for rendered in (before, after, small):
        rendered.delete()
