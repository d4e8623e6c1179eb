from dataclasses import dataclass
from enum import Enum
from typing import Any, Optional, Union


class RequestOutputKind(Enum):
    CUMULATIVE = 0
    DELTA = 1
    FINAL_ONLY = 2


@dataclass
class SamplingParams:
    temperature: float = 1.0
    stop: Optional[Union[str, list[str]]] = None
    max_tokens: Optional[int] = 16
    skip_special_tokens: bool = True
    spaces_between_special_tokens: bool = True
    logits_processors: Optional[Any] = None
    output_kind: RequestOutputKind = RequestOutputKind.CUMULATIVE
