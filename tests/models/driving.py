"""What tests of downloads share: which files belong to the model, and waiting."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from desktop.models import manifest
from desktop.models.download import Download, Event
from tests.models.hub import SHARD, Hub

NEEDED = {"config.json", "model.safetensors.index.json", SHARD, "tokenizer.json",
          "tokenizer_config.json", "processor_config.json", "special_tokens_map.json",
          "modeling_deepseekocr2.py", "LICENSE", "empty.txt"}
Begin = Callable[..., tuple[Download, list[Event]]]


def is_whole(folder: Path, hub: Hub) -> bool:
    """Whether FOLDER holds what HUB has, and nothing half done is left beside it."""
    names = set(os.listdir(folder))
    return (names == NEEDED | {manifest.NAME}
            and all((folder / name).read_bytes() == hub.files[name] for name in NEEDED)
            and os.listdir(folder.parent) == [folder.name])


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)
