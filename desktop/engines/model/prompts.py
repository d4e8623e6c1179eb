"""The model's prompts, byte for byte.

Extra words in a prompt break recognition, so these are the ones published with the model. A
prompt has two forms: the text alone, for a chat message that carries the image beside it (the
server puts the image's mark in front), and with the mark, for completions and offline use.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from desktop.errors import VersoError
from desktop.i18n import N_, _

IMAGE = "<image>"
"""The mark that stands for the page."""

_PRESETS = {
    "markdown": "<|grounding|>Convert the document to markdown.",
    "free": "Free OCR.",
    "ocr": "<|grounding|>OCR this image.",
    "figure": "Parse the figure.",
    "describe": "Describe this image in detail.",
    "locate": "Locate <|ref|>{text}<|/ref|> in the image.",
}


class BadPrompt(VersoError):
    """The custom prompt cannot be sent."""

    code = "model.prompt"
    message = N_("The custom prompt cannot be used: {reason}.")
    hint = N_("Change “Custom prompt” in the settings, or choose another task.")


def chat(settings: Mapping[str, Any]) -> str:
    """The text of a chat message beside its image; raises :class:`BadPrompt`.

    SETTINGS are a page's values: ``prompt`` and ``custom_prompt`` count.
    """
    preset = str(settings.get("prompt") or "markdown")
    custom = str(settings.get("custom_prompt") or "")
    if preset == "custom":
        text = custom.replace("\r\n", "\n")
        if text.startswith(IMAGE):
            text = text[len(IMAGE):].removeprefix("\n")
        if not text.strip():
            raise BadPrompt(reason=_("it is empty"))
    elif preset == "locate":
        if not custom.strip():
            raise BadPrompt(reason=_("the text to look for is empty"))
        text = _PRESETS["locate"].format(text=custom.strip())
    else:
        text = _PRESETS.get(preset, _PRESETS["markdown"])
    if IMAGE in text:
        raise BadPrompt(reason=_("a page is one image, the prompt names more"))
    return text


def completion(settings: Mapping[str, Any]) -> str:
    """The whole prompt with the page's mark; raises :class:`BadPrompt`."""
    return f"{IMAGE}\n{chat(settings)}"


def grounded(settings: Mapping[str, Any]) -> bool:
    """Whether the task asks for boxes."""
    return "<|grounding|>" in chat(settings) or settings.get("prompt") == "locate"
