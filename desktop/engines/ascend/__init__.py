"""Ascend NPUs: the environment, the repairs and the preparation that vllm-ascend needs."""
