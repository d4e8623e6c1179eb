"""What becomes of each oddity that models were seen to write."""

from __future__ import annotations

import pytest

from desktop.document.model import Block
from desktop.document.parser import StreamParser, parse


def tag(label: str, *boxes: tuple[float, ...]) -> str:
    return f"<|ref|>{label}<|/ref|><|det|>{[list(box) for box in boxes]}<|/det|>\n"


def short(blocks: tuple[Block, ...]) -> list[tuple[str, str]]:
    return [(block.label, block.markdown) for block in blocks]


def test_a_page_as_the_model_writes_it() -> None:
    blocks = parse(
        tag("title", (10, 20, 30, 40)) + "# Head  \n\n"
        + tag("text", (1, 2, 3, 4), (5, 6, 7, 8)) + "One.\nTwo.\n\nThree.  \n\n"
        + tag("equation", (1, 1, 2, 2)) + r"\[x = 1\]")
    assert blocks == (
        Block(0, "title", ((10, 20, 30, 40),), "# Head"),
        Block(1, "text", ((1, 2, 3, 4), (5, 6, 7, 8)), "One.\nTwo.\n\nThree."),
        Block(2, "equation", ((1, 1, 2, 2),), r"\[x = 1\]"),
    )
    assert [block.id for block in blocks] == ["b1", "b2", "b3"]


@pytest.mark.parametrize(("payload", "boxes"), [
    ("[[1, 2, 3, 4]]", ((1, 2, 3, 4),)),
    (" [[1,2,3,4]] ", ((1, 2, 3, 4),)),
    ("[1, 2, 3, 4]", ((1, 2, 3, 4),)),
    ("[[1, 2, 3, 4], [5, 6, 7, 8]]", ((1, 2, 3, 4), (5, 6, 7, 8))),
    ("[[-5, 0, 1200, 1000]]", ((0, 0, 999, 999),)),
    ("[[300, 400, 100, 200]]", ((100, 200, 300, 400),)),
    ("[[1.4, 2.6, 3.0, 4.]]", ((1, 3, 3, 4),)),
    ("[[1, 2, 3]]", ()),
    ("[[1, 2, 3, 4, 5]]", ()),
    ("[[a, b, c, d]]", ()),
    ("[[1, 2, 3, 4], [5, 6", ((1, 2, 3, 4),)),
    ("__import__('os').system('true')", ()),
    ("", ()),
    ("[[" + "9" * 400 + ", 0, 1, 1]]", ((1, 0, 999, 1),)),
])
def test_boxes(payload: str, boxes: tuple[tuple[int, ...], ...]) -> None:
    (block,) = parse(f"<|ref|>text<|/ref|><|det|>{payload}<|/det|>\nHello")
    assert block == Block(0, "text", boxes, "Hello")


@pytest.mark.parametrize(("written", "label"), [
    ("text", "text"), (" Title ", "title"), ("Table Caption", "table_caption"),
    ("sub_title", "sub_title"), ("margin_note", "margin_note"), ("noise", "text"),
])
def test_labels_are_normalised_and_an_open_set(written: str, label: str) -> None:
    (block,) = parse(tag(written, (1, 2, 3, 4)) + "Hello")
    assert (block.label, block.markdown) == (label, "Hello")


def test_spaces_and_a_line_break_inside_a_tag() -> None:
    text = "<| ref |>text<| /ref |> <|det|> [[1, 2, 3, 4]] <|/det|>Hello"
    assert parse(text) == (Block(0, "text", ((1, 2, 3, 4),), "Hello"),)
    assert parse(text.replace("> <", ">\n<")) == (Block(0, "text", ((1, 2, 3, 4),), "Hello"),)


def test_a_ref_without_a_det_is_a_block_without_a_box() -> None:
    assert parse("<|ref|>text<|/ref|>成为 17  \n\n" + tag("text", (1, 2, 3, 4)) + "x") == (
        Block(0, "text", (), "成为 17"), Block(1, "text", ((1, 2, 3, 4),), "x"))


def test_a_det_without_a_ref_is_a_block_without_a_label() -> None:
    assert parse("<|det|>[[1, 2, 3, 4]]<|/det|>\nHello\n\nthere") == (
        Block(0, "", ((1, 2, 3, 4),), "Hello\n\nthere"),)


def test_a_det_that_is_not_closed_ends_with_its_line() -> None:
    assert parse("<|ref|>text<|/ref|><|det|>[[1, 2, 3, 4]]\nHello") == (
        Block(0, "text", ((1, 2, 3, 4),), "Hello"),)


def test_a_caption_tag_before_the_content_of_its_table() -> None:
    text = (tag("table", (1, 20, 30, 40)) + tag("table_caption", (1, 2, 30, 10))
            + "Table 1. Results.   \n\n<table><tr><td>a</td></tr></table>  \n\n"
            + tag("text", (5, 5, 6, 6)) + "After.")
    assert parse(text) == (
        Block(0, "table_caption", ((1, 2, 30, 10),), "Table 1. Results."),
        Block(1, "table", ((1, 20, 30, 40),), "<table><tr><td>a</td></tr></table>"),
        Block(2, "text", ((5, 5, 6, 6),), "After."),
    )


def test_the_box_of_a_table_is_known_while_its_caption_is_read() -> None:
    parser = StreamParser()
    parser.feed(tag("table", (1, 20, 30, 40)) + tag("table_caption", (1, 2, 30, 10)) + "Tab")
    assert [(b.label, b.markdown, b.open) for b in parser.blocks] == [
        ("table_caption", "Tab", True), ("table", "", True)]


def test_a_table_whose_caption_has_no_table_after_it() -> None:
    text = (tag("table", (1, 1, 2, 2)) + tag("table_caption", (3, 3, 4, 4)) + "Caption.\n\n"
            + tag("text", (5, 5, 6, 6)) + "<table>")
    assert short(parse(text)) == [
        ("table_caption", "Caption."), ("table", ""), ("text", "<table>")]


def test_a_caption_of_its_own_before_the_table_even_empty() -> None:
    text = tag("table_caption", (1, 1, 2, 2)) + " \n\n" + tag("table", (3, 3, 4, 4)) + "<table>"
    assert short(parse(text)) == [("table_caption", ""), ("table", "<table>")]


def test_a_figure_comes_before_its_caption() -> None:
    text = (tag("image", (1, 1, 2, 2)) + tag("image_caption", (3, 3, 4, 4))
            + "<center>Fig. 1 </center>  ")
    assert short(parse(text)) == [("image", ""), ("image_caption", "<center>Fig. 1 </center>")]


def test_a_figure_read_as_a_table_is_a_block_where_the_figure_is() -> None:
    text = (tag("image", (1, 1, 2, 2)) + tag("image_caption", (3, 3, 4, 4))
            + "Sales\n\n<table><tr><td>1</td></tr></table>")
    assert parse(text)[2] == Block(
        2, "table", ((1, 1, 2, 2),), "<table><tr><td>1</td></tr></table>")
    assert short(parse(text))[:2] == [("image", ""), ("image_caption", "Sales")]


def test_recognised_text_in_the_place_of_the_label() -> None:
    text = "".join(f"<|ref|>{word}<|/ref|><|det|>[[1, 2, 3, 4]]<|/det|>\n"
                   for word in ("Uair", "B uBisness Studio", "npoecc2", "hello", "Title", "a < b"))
    assert short(parse(text)) == [
        ("text", word) for word in
        ("Uair", "B uBisness Studio", "npoecc2", "hello", "Title", "a < b")]


def test_tags_whose_tokens_a_server_stripped() -> None:
    text = ("9,800 hits\n\ntitle[[110, 312, 270, 333]]\n# Head \n\n"
            "table[[1, 20, 30, 40]]\ntable_caption[[1, 2, 3, 4]]\nTable 1.\n\n<table></table>\n\n"
            "margin_note[[1, 1, 2, 2]]\nSee [[4]].")
    assert parse(text) == (
        Block(0, "", (), "9,800 hits"),
        Block(1, "title", ((110, 312, 270, 333),), "# Head"),
        Block(2, "table_caption", ((1, 2, 3, 4),), "Table 1."),
        Block(3, "table", ((1, 20, 30, 40),), "<table></table>"),
        Block(4, "margin_note", ((1, 1, 2, 2),), "See [[4]]."),
    )


@pytest.mark.parametrize("code", [
    "x[[1, 2, 3, 4]].sum()", "text[1, 2]", "text[[1, 2, 3]]", "see text[[1, 2, 3, 4]]",
    "index[[1, 2, 3, 4]] = 0",
])
def test_code_that_looks_like_a_stripped_tag(code: str) -> None:
    assert parse(code) == (Block(0, "", (), code),)


def test_a_stripped_tag_is_text_once_tags_came_with_their_tokens() -> None:
    text = tag("text", (1, 2, 3, 4)) + "title[[1, 2, 3, 4]]\nis how servers strip it"
    assert short(parse(text)) == [("text", "title[[1, 2, 3, 4]]\nis how servers strip it")]


def test_text_without_any_tag_is_a_block_a_paragraph() -> None:
    assert short(parse("One\ntwo\n\n\n  Three\n \nFour")) == [
        ("", "One\ntwo"), ("", "Three"), ("", "Four")]


@pytest.mark.parametrize("whole", [
    "<table><tr>\n\n<td>a</td>\n\n</tr></table>", "```\na\n\nb\n```", "\\[\na\n\nb\n\\]",
    "$$\na\n\nb\n$$",
])
def test_paragraphs_do_not_cut_tables_code_or_formulas(whole: str) -> None:
    assert short(parse(f"Before\n\n{whole}\n\nAfter")) == [
        ("", "Before"), ("", whole), ("", "After")]


def test_end_tokens_and_invented_tokens_are_no_text() -> None:
    parser = StreamParser()
    parser.feed("1-4-<|end_of_line|>1-5<|md_start_of_line|><｜begin▁of▁sentence｜>!")
    assert not parser.ended
    parser.feed("<｜end▁of▁sen")
    parser.feed("tence｜>")
    parser.finish()
    assert parser.ended
    assert short(tuple(parser.blocks)) == [("", "1-4-1-5!")]


@pytest.mark.parametrize("text", [
    "a <| b |> c", "|<|x|>|", "a <b> c", "p <| q", "List<String>", "1 < 2", "<", "a <",
])
def test_what_only_begins_like_a_token_is_text(text: str) -> None:
    assert short(parse(text)) == [("", text)]


@pytest.mark.parametrize("separator", [
    "<--- Page Split --->", "--- Page 12 ---", "<---Page Split--->",
])
def test_page_separators_end_a_block_and_are_no_text(separator: str) -> None:
    text = (f"{separator}\n\n" + tag("text", (1, 2, 3, 4))
            + f"One\n\n{separator}\n\nTwo\n\n{separator}\n")
    assert short(parse(text)) == [("text", "One"), ("", "Two")]


@pytest.mark.parametrize("line", [
    "---", "--- Page", "--- Page two ---", "- Page 2", "--- Page 2 --- x",
])
def test_lines_that_are_no_page_separator(line: str) -> None:
    assert short(parse(f"a\n{line}\nb")) == [("", f"a\n{line}\nb")]


@pytest.mark.parametrize(("cut", "expected"), [
    ("<|ref|>image<|/ref|><|det|>[[0, 513, 18,", [("text", "Hello"), ("image", "")]),
    ("<|ref|>image<|/ref|><|de", [("text", "Hello"), ("image", "")]),
    ("<|ref|>image<|/ref|>", [("text", "Hello"), ("image", "")]),
    ("<|ref|>image<|/r", [("text", "Hello")]),
    ("<|ref|>ima", [("text", "Hello")]),
    ("<|ref|>", [("text", "Hello")]),
    ("<|re", [("text", "Hello")]),
    ("<｜end▁of", [("text", "Hello")]),
    ("<--- Page Sp", [("text", "Hello")]),
    ("<", [("text", "Hello\n\n<")]),
])
def test_output_cut_inside_a_tag(cut: str, expected: list[tuple[str, str]]) -> None:
    assert short(parse(tag("text", (1, 2, 3, 4)) + "Hello\n\n" + cut)) == expected


def test_output_cut_inside_a_stripped_tag() -> None:
    assert short(parse("text[[1, 2, 3, 4]]\nHello\n\nimage[[0, 513, 18,")) == [
        ("text", "Hello"), ("image", "")]


def test_output_that_ends_on_a_tag_or_has_empty_blocks() -> None:
    assert short(parse(tag("image", (1, 2, 3, 4)) + "\n\n" + tag("table", (0, 0, 999, 999)))) == [
        ("image", ""), ("table", "")]


LOG = ("=====================\nBASE:  torch.Size([1, 256, 1280])\n"
       "PATCHES:  torch.Size([6, 100, 1280])\n=====================")


def test_what_a_program_logged_is_noise() -> None:
    text = f"{LOG}\n" + tag("text", (1, 2, 3, 4)) + f"Hello 2025- 1{LOG}\n"
    assert short(parse(text)) == [("noise", LOG), ("text", "Hello 2025- 1"), ("noise", LOG)]


def test_text_after_noise_is_a_block_again() -> None:
    assert short(parse(f"{LOG}\n2\n\nimage size:  (1139, 1794)\nother: 100%|██| 1/1 [00:00<00:00]"
                       "\n\nThree")) == [
        ("noise", LOG), ("", "2"),
        ("noise", "image size:  (1139, 1794)\nother: 100%|██| 1/1 [00:00<00:00]"), ("", "Three")]


@pytest.mark.parametrize("line", [
    "=" * 20, "=" * 22, "=" * 60, "BASE: a camp", "image size: large", "other: none",
    "compression ratio: high",
])
def test_lines_that_only_look_like_noise(line: str) -> None:
    assert short(parse(f"a\n{line}\nb")) == [("", f"a\n{line}\nb")]


def test_indentation_of_the_first_line_is_kept() -> None:
    assert short(parse(tag("code", (1, 2, 3, 4)) + "\n    def f():\n        pass\n")) == [
        ("code", "    def f():\n        pass")]


def test_blocks_open_and_close() -> None:
    parser = StreamParser()
    parser.feed(tag("text", (1, 2, 3, 4)) + "Hel")
    assert parser.blocks[0].open
    assert parser.feed("lo\n\n") == (0,)
    assert parser.feed("<|ref|>te") == ()
    assert parser.feed("xt<|/ref|><|det|>[[5, 6, 7, 8]]<|/det|>") == (0, 1)
    assert [block.open for block in parser.blocks] == [False, True]
    assert parser.finish() == (1,)
    assert [block.open for block in parser.blocks] == [False, False]


def test_text_streams_on_without_waiting_for_its_line_or_block() -> None:
    parser = StreamParser()
    parser.feed(tag("text", (1, 2, 3, 4)))
    seen = []
    for word in ("Every ", "quick ", "brown ", "fox"):
        parser.feed(word)
        seen.append(parser.blocks[0].markdown)
    assert seen == ["Every", "Every quick", "Every quick brown", "Every quick brown fox"]


def test_white_space_alone_changes_nothing() -> None:
    parser = StreamParser()
    parser.feed(tag("text", (1, 2, 3, 4)) + "Hello")
    assert parser.feed("  ") == ()
    assert parser.feed("\n\n") == ()


def test_confidence_before_and_after_its_block() -> None:
    parser = StreamParser()
    parser.feed(tag("text", (1, 2, 3, 4)) + "One\n\n")
    assert parser.set_confidence(0, 0.5) == (0,)
    assert parser.set_confidence(1, 0.75) == ()
    parser.feed(tag("text", (1, 2, 3, 4)) + "Two")
    assert [block.confidence for block in parser.blocks] == [0.5, 0.75]


def test_a_block_that_did_not_change_is_the_same_object() -> None:
    parser = StreamParser()
    parser.feed(tag("text", (1, 2, 3, 4)) + "One\n\n" + tag("text", (1, 2, 3, 4)) + "Two")
    first = parser.blocks[0]
    parser.feed(" more")
    assert parser.blocks[0] is first
    assert list(parser.blocks[:1]) == [first]
    assert len(parser.blocks) == 2
