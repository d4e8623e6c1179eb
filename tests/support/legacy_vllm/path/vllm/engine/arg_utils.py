from dataclasses import dataclass
from typing import Any, Optional

import verso_recital


@dataclass
class AsyncEngineArgs:
    model: str = "facebook/opt-125m"
    trust_remote_code: bool = False
    dtype: str = "auto"
    max_model_len: Optional[int] = None
    tensor_parallel_size: int = 1
    block_size: Optional[int] = None
    swap_space: float = 4
    gpu_memory_utilization: float = 0.9
    max_num_seqs: Optional[int] = None
    disable_log_stats: bool = False
    hf_token: Optional[Any] = None
    hf_overrides: Optional[Any] = None
    quantization: Optional[str] = None
    enforce_eager: Optional[bool] = None
    disable_mm_preprocessor_cache: bool = False
    num_gpu_blocks_override: Optional[int] = None
    disable_log_requests: bool = False

    def __post_init__(self):
        from vllm.plugins import load_general_plugins
        load_general_plugins()

    def create_engine_config(self, usage_context=None):
        return verso_recital.configured(self)

    @staticmethod
    def add_cli_args(parser, async_args_only=False):
        parser.add_argument("--block-size", type=int)
        parser.add_argument("--num-gpu-blocks-override", type=int)
        parser.add_argument("--swap-space", type=float)
        parser.add_argument("--hf-token", type=str)
        parser.add_argument("--disable-log-requests", action="store_true")
        return parser
