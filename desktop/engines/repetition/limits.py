"""How much repetition a page can hold. Every limit stands for something that it cannot."""

from __future__ import annotations

# --- equal to the letter

ROWS = 120
"""Equal rows of a table. A4 holds 297 mm / 2.5 mm (the smallest print that is read) ≈ 119."""
FILLED = 0.75
"""Share of that for rows with letters or numbers in them and for lines of words: nobody prints a
page full of one entry, as one does of empty rows."""
LEAST_ROWS = 64
"""Allowed however small the table's box is said to be: boxes are the model's word, too."""
LINES = 120
"""Equal lines (code, ruled lines, ASCII tables), for the same reason."""
CELLS = 150
"""Equal cells with no row's end between them; a table of that many columns cannot be read."""
SYMBOLS = 1600
"""Characters in one line with no letter in them: dot leaders, underscores, rows of zeros. The
longest printed line is some 250 characters; half a dozen of them may be joined into one."""
PHRASES = ((16, 300), (8, 900))
"""(times, letters): what is repeated within a line, without a line break or a cell's end. Nothing
printed says one thing 16 times over; refrains and forms have their line breaks. Words of fewer
than :data:`SHORT_WORDS` letters on average (chords, codes) count as :data:`SYMBOLS`."""
SHORT_WORDS = 2.0
REPEATED_LETTERS = ((12, 3000), (4, 6000))
"""(times, letters) of anything repeated, lines and rows included: a full page has 3000 letters,
the fullest (a newspaper) three times as many, and not one that says a single thing twelve times.
A sheet of 33 equal address labels has 2600."""
REPEATED_BLOCKS = 6
"""Times that the same blocks may be said to be at exactly the same places."""

# --- equal but for numbers that count on

COUNTED_ROWS = 200
"""Rows or lines: numbered empty rows, conversion tables, answer sheets of 200 questions."""
COUNTED_CELLS = 72
"""Cells with letters (``Week 1`` … ``Week 53``) with no row's end between them."""
COUNTED_NUMBERS = 300
"""Plain numbers in sequence within a line or a row."""
COUNTED_PHRASES = 150
"""Phrases within a line."""
UNEVEN = 0.05
"""Share of numbers that may break step (a lost digit, a turn of the page)."""

# --- few different ones

WORDS, DIFFERENT_WORDS, WORD_LENGTH = 100, 8, 3.0
"""Of so many words in one line or cell at most so many different ones, of so many letters on
average: prose has 60 and more. The length spares codes (``k2 p2``), notes and codons."""
UNITS, DIFFERENT_UNITS = 160, 6
"""The same for rows and for lines: more than a page has of them, in any order."""
RECENT, NEW_SHARE = 1500, 0.03
"""Of so many words, in rows and lines too, this share must begin something new. A page of prose
has a third as many words; a grid of 30 × 40 that only says yes and no has 1200."""

# --- blocks

REPLAYS = 12
"""Blocks of equal content at the place of an earlier one."""
COUNTED_REPLAYS = 24
"""The same where the contents differ in their numbers only."""
REPLAYED_LETTERS = (3, 600)
"""(blocks, letters): text read again where it was read before."""
MARCH = 64
"""Equal blocks of one size, one below the other at equal distances: a page has 50 lines."""
MARCHING_TEXT = (24, 25)
"""(blocks, letters each): the same with a sentence in each."""
EQUAL_BLOCKS = (24, 200)
"""(times, blocks): equal blocks, or groups of them, in a row, wherever they are. A chart of icons
has as many; a year's calendar has 365, in groups of a month said twelve times."""

# --- near the limit

STALE_WINDOW, STALE_SHARE = 800, 0.06
"""Of so many tokens, this share must begin something new; tables of numbers have 30 % and more."""
