from vllm.model_executor.layers.fused_moe.fused_moe import fused_moe

__all__ = ["fused_moe"]
