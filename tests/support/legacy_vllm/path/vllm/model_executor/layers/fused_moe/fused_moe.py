def fused_moe(hidden_states, w1, w2, gating_output, topk, renormalize):
    return "vLLM's"
