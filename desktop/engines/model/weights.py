"""Whether a folder holds a whole model: configuration, weights, tokenizer, image processor.

Looks at names, sizes and the headers of the weight files, never at all of their bytes: a copy
that was cut, a shard that was forgotten and a git checkout without its large files are found in
milliseconds. Runs on Python 3.10 with the standard library alone.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from desktop.i18n import _

HEADER_LIMIT = 100_000_000
"""Longest header a safetensors file may have, in bytes (the format's own limit)."""

_INDEXES = ("model.safetensors.index.json", "pytorch_model.bin.index.json")
_SINGLE = ("model.safetensors", "pytorch_model.bin")
_TOKENIZERS = (("tokenizer.json",), ("tokenizer.model",), ("vocab.json", "merges.txt"))
_PROCESSORS = (("processor_config.json",), ("preprocessor_config.json",))
_POINTER = b"version https://git-lfs"


@dataclass(frozen=True)
class Weights:
    """What was found in a folder."""

    complete: bool
    """Whether an engine can load it, as far as names, sizes and headers tell."""
    missing: tuple[str, ...]
    """Files that are not there, relative to the folder."""
    bytes: int
    """Size of the weight files that are there: roughly what they take of a device's memory."""
    architecture: str
    """What ``config.json`` names, such as ``DeepseekOCR2ForCausalLM``; empty: unknown."""
    damaged: tuple[tuple[str, str], ...] = ()
    """Files that are there and cannot be right, each with the reason in words."""

    def words(self) -> str:
        """What is wrong, in one line; empty when nothing is."""
        found = [_("{file} is missing").format(file=name) for name in self.missing]
        found += [f"{name}: {reason}" for name, reason in self.damaged]
        return "; ".join(found)


def check(folder: str | Path) -> Weights:
    """Look at FOLDER. It may be missing: then everything is. Raises nothing."""
    look = _Look(Path(folder))
    architecture = look.configuration()
    size = look.weights()
    look.one_of(_TOKENIZERS)
    look.json("tokenizer_config.json")
    look.one_of(_PROCESSORS)
    return Weights(not look.missing and not look.damaged, tuple(look.missing), size, architecture,
                   tuple(look.damaged.items()))


def architecture(folder: str | Path) -> str:
    """What the ``config.json`` in FOLDER names; empty: it does not say, or there is none."""
    return _Look(Path(folder)).configuration()


class _Look:
    """One look at a folder; collects what is wrong."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.missing: list[str] = []
        self.damaged: dict[str, str] = {}

    def configuration(self) -> str:
        found = self.json("config.json")
        names = found.get("architectures")
        if isinstance(names, list) and names and isinstance(names[0], str):
            return names[0]
        model_type = found.get("model_type")
        return model_type if isinstance(model_type, str) else ""

    def weights(self) -> int:
        """Bytes of the weight files."""
        for index in _INDEXES:
            if (self._folder / index).is_file():
                return self._indexed(index)
        # An engine takes every such file, whatever it is called; adapters do not count.
        single = [name for name in _SINGLE if (self._folder / name).is_file()]
        names = single[:1] or sorted(
            path.name for path in self._files("*.safetensors")
            if not path.name.startswith("adapter_"))
        if not names:
            self._miss(_SINGLE[0])
        return sum(self._weight_file(name, None) for name in names)

    def one_of(self, sets: tuple[tuple[str, ...], ...]) -> None:
        """One of SETS must be there whole; the first is what is missed otherwise."""
        for names in sets:
            if all((self._folder / name).is_file() for name in names):
                for name in names:
                    self._text_file(name)
                return
        for name in sets[0]:
            self._miss(name)

    def json(self, name: str) -> dict[str, Any]:
        """The object in the file NAME; empty, and a complaint, when there is none."""
        path = self._folder / name
        if not path.is_file():
            self._miss(name)
            return {}
        try:
            content = path.read_bytes()
        except OSError as error:
            self.damaged[name] = _("cannot be read ({reason})").format(reason=error.strerror)
            return {}
        if content.startswith(_POINTER):
            self._is_pointer(name)
            return {}
        try:
            found = json.loads(content)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            self.damaged[name] = _("is not a JSON object")
            return {}
        return found

    # --- inside
    def _indexed(self, index: str) -> int:
        found = self.json(index).get("weight_map")
        if not isinstance(found, dict) or not found:
            self.damaged.setdefault(index, _("names no weights"))
            return 0
        tensors: dict[str, set[str]] = {}
        for tensor, name in found.items():
            if not isinstance(name, str) or not is_inside(name):
                self.damaged[index] = _("names a file outside the folder")
                return 0
            tensors.setdefault(name, set()).add(tensor)
        return sum(self._weight_file(name, tensors[name]) for name in sorted(tensors))

    def _weight_file(self, name: str, tensors: set[str] | None) -> int:
        """Bytes of the weight file NAME, which must hold TENSORS."""
        path = self._folder / name
        if not path.is_file():
            self._miss(name)
            return 0
        try:
            with open(path, "rb") as file:
                size = path.stat().st_size
                start = file.read(len(_POINTER))
                if start == _POINTER:
                    self._is_pointer(name)
                elif not name.endswith(".safetensors"):
                    if size == 0:
                        self.damaged[name] = _("is empty")
                else:
                    file.seek(0)
                    self._header(name, file.read(8), file, size, tensors)
        except OSError as error:
            self.damaged[name] = _("cannot be read ({reason})").format(reason=error.strerror)
            return 0
        return size

    def _header(self, name: str, first: bytes, file: Any, size: int,
                tensors: set[str] | None) -> None:
        """The header is a length (64 bits, little endian) and a JSON object; tensors follow
        without a gap up to the file's end
        (https://github.com/huggingface/safetensors#format)."""
        length = struct.unpack("<Q", first)[0] if len(first) == 8 else 0
        if not 2 <= length <= HEADER_LIMIT:
            self.damaged[name] = _("is not a safetensors file")
            return
        if 8 + length > size:
            self.damaged[name] = _("is cut off in its header, at {size} bytes").format(size=size)
            return
        try:
            header = json.loads(file.read(length))
            entries = {key: value for key, value in header.items() if key != "__metadata__"}
            end = max((value["data_offsets"][1] for value in entries.values()), default=0)
            whole = 8 + length + int(end)
        except (ValueError, RecursionError, TypeError, AttributeError, KeyError, IndexError):
            self.damaged[name] = _("has a header that cannot be read")
            return
        if size != whole:
            self.damaged[name] = _("has {size} of {whole} bytes").format(size=size, whole=whole)
        elif tensors and (absent := tensors - entries.keys()):
            self.damaged[name] = _("lacks {count} of the tensors that the index names").format(
                count=len(absent))

    def _text_file(self, name: str) -> None:
        path = self._folder / name
        try:
            with open(path, "rb") as file:
                start = file.read(len(_POINTER))
                if name.endswith(".json") and start and start != _POINTER:
                    file.seek(max(0, path.stat().st_size - 64))
                    if start.lstrip()[:1] != b"{" or file.read().rstrip()[-1:] != b"}":
                        self.damaged.setdefault(name, _("is not a JSON object"))
        except OSError as error:
            self.damaged[name] = _("cannot be read ({reason})").format(reason=error.strerror)
            return
        if not start:
            self.damaged[name] = _("is empty")
        elif start == _POINTER:
            self._is_pointer(name)

    def _is_pointer(self, name: str) -> None:
        self.damaged[name] = _("is only a Git LFS pointer; fetch the file itself (git lfs pull)")

    def _miss(self, name: str) -> None:
        if name not in self.missing:
            self.missing.append(name)

    def _files(self, pattern: str) -> Iterator[Path]:
        try:
            yield from (path for path in self._folder.glob(pattern) if path.is_file())
        except OSError:
            return  # not a folder, or not ours to read: nothing is there


def is_inside(name: str) -> bool:
    """Whether NAME, a path with slashes, leads to a file below the folder it is relative to, on
    every system (a hub's word for a file must not lead elsewhere)."""
    path = PurePosixPath(name)
    return bool(path.parts) and not path.is_absolute() and ".." not in path.parts \
        and "\\" not in name and ":" not in name and "\0" not in name and not name.endswith("/") \
        and path.as_posix() == name
