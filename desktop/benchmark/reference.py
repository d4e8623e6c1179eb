"""Published curves, to hold one's own against."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Point:
    """Tokens a second at so many pages at once."""

    concurrency: int
    output_tps: float
    total_tps: float


@dataclass(frozen=True)
class Curve:
    """TITLE and SOURCE as they are shown."""

    title: str
    source: str
    points: tuple[Point, ...]


ASCEND_A2 = Curve(
    "CANN recipe (Atlas A2)",
    "hicann/cann-recipes-infer, integration/vllm/deepseek-ocr-2, README: one Ascend A2, "
    "vllm-ascend 0.8.5rc1",
    (Point(1, 40.50, 96.78), Point(4, 106.50, 292.68), Point(8, 212.52, 584.02),
     Point(32, 413.68, 1136.81), Point(64, 486.62, 1337.26), Point(100, 550.45, 1512.68)))


@dataclass(frozen=True)
class Compared:
    """Seconds a page and busy share (percent) of a strategy in the vLLM article: 100 pages of a
    PDF on an RTX 4090."""

    strategy: str
    seconds_a_page: float
    busy: tuple[int, int] | None


VLLM_ARTICLE = (Compared("sequential", 17.25, (35, 45)), Compared("batch:4", 5.52, None),
                Compared("continuous", 3.98, (80, 90)))
"""“vLLM article”; its one by one is Transformers, not vLLM."""
