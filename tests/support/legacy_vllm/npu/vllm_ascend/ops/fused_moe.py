def select_experts(hidden_states, router_logits, top_k, use_grouped_topk, renormalize,
                   topk_group=None, num_expert_group=None, custom_routing_function=None,
                   scoring_func="softmax", e_score_correction_bias=None):
    return "weights", "experts"


def fused_experts(hidden_states, w1, w2, topk_weights, topk_ids, top_k, expert_map=None):
    return "vllm-ascend's"
