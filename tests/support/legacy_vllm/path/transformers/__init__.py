"""A tokenizer for tests: one token a character, and one for each of the model's special ones."""

import re

SPECIAL = {
    "<｜begin▁of▁sentence｜>": 0, "<｜end▁of▁sentence｜>": 1, "<image>": 2, "<|ref|>": 3,
    "<|/ref|>": 4, "<|det|>": 5, "<|/det|>": 6, "<|grounding|>": 7, "<td>": 8, "</td>": 9,
}
_FIRST = 10
_PIECES = re.compile("(" + "|".join(map(re.escape, SPECIAL)) + ")")


class AutoTokenizer:
    bos_token_id, eos_token_id = 0, 1
    vocab = SPECIAL

    @classmethod
    def from_pretrained(cls, name, trust_remote_code=False):
        assert trust_remote_code
        found = cls()
        found.name = name
        return found

    def encode(self, text, add_special_tokens=True):
        ids = [0] if add_special_tokens else []
        for piece in _PIECES.split(text):
            ids += [SPECIAL[piece]] if piece in SPECIAL else [_FIRST + ord(c) for c in piece]
        return ids

    def decode(self, ids, skip_special_tokens=True):
        names = {number: name for name, number in SPECIAL.items()}
        return "".join(("" if skip_special_tokens else names[number]) if number in names
                       else chr(number - _FIRST) for number in ids)
