"""The operators that vllm-ascend's mixture of experts calls, on a processor."""

from npu_operators import *  # noqa: F403 - tests/engines/ascend/moe is on the path
