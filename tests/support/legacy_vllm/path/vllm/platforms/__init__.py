import importlib.util


class Platform:
    device_type = "npu" if importlib.util.find_spec("vllm_ascend") else "cuda"

    @classmethod
    def get_device_name(cls, device_id=0):
        return "Ascend910B3" if cls.device_type == "npu" else "NVIDIA A100-PCIE-40GB"


current_platform = Platform()
