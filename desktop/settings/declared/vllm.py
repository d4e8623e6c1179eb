"""Settings of the engines that load the model on this machine."""

from __future__ import annotations

import re

from desktop.i18n import N_
from desktop.settings.declare import Applies, Section, Setting

_LOCAL = frozenset({"vllm", "ascend", "ascend-legacy"})
_VLLM = frozenset({"vllm", "ascend"})
_LEGACY = frozenset({"ascend-legacy"})


def _are_devices(value: str) -> bool:
    names = [name.strip() for name in value.split(",")] if value.strip() else []
    return len(set(names)) == len(names) and all(
        re.fullmatch(r"[0-9]+|(?:GPU|MIG)-[0-9A-Za-z/-]+", name) for name in names)


VLLM: tuple[Setting, ...] = (
    Setting(
        "model", str, "", N_("Model"),
        N_("Folder of DeepSeek-OCR-2; empty: the one that Verso downloaded."),
        Section.ENGINE, Applies.ENGINE_RESTART, is_path=True, engines=_LOCAL,
    ),
    Setting(
        "engine_interpreter", str, "", N_("Engine interpreter"),
        N_("The Python that runs the engine: a program, the folder of a virtual or conda "
           "environment, or conda:NAME; empty: the one that runs Verso. It needs msgspec and "
           "Pillow besides vLLM."),
        Section.ENGINE, Applies.ENGINE_RESTART, is_path=True, engines=_LOCAL,
        shapes_result=False,
    ),
    Setting(
        "devices", str, "", N_("Devices"),
        N_("Accelerators to use, separated by commas: their numbers as nvidia-smi or npu-smi "
           "counts, for NVIDIA also names (GPU-…, MIG-…); empty: all that the system shows."),
        Section.ENGINE, Applies.ENGINE_RESTART, engines=_LOCAL, shapes_result=False,
        check=lambda value: _are_devices(str(value)),
        words=N_("numbers such as 0,1 or names such as GPU-… and MIG-…, separated by commas, none "
                 "twice"),
        helps={
            "ascend": N_("Numbers of the NPUs to use, separated by commas, as npu-smi info -m "
                         "counts (Chip Logic ID); empty: those of ASCEND_RT_VISIBLE_DEVICES, else "
                         "all."),
            "ascend-legacy": N_("Numbers of the NPUs (npu-smi info -m, Chip Logic ID) or GPUs to "
                                "use, separated by commas; empty: all that the system shows."),
        },
    ),
    Setting(
        "official_code", str, "", N_("Official code"),
        N_("Folder of the model's official vLLM code, or of the copy that `verso prepare-npu` "
           "made of it; empty: deepseek_ocr2_npu or DeepSeek-OCR-2 in your home folder."),
        Section.ENGINE, Applies.ENGINE_RESTART, is_path=True, engines=_LEGACY,
    ),
    Setting(
        "memory_utilization", float, 0.85, N_("Memory utilization"),
        N_("Share of the device's memory that the engine may take."),
        Section.RUN, Applies.ENGINE_RESTART, minimum=0.1, maximum=0.98, step=0.01, visible=True,
        engines=_LOCAL, shapes_result=False,
        helps={
            "ascend": N_("Share of the NPU's memory (HBM) that the engine may take; the CANN "
                         "recipe (Atlas A2) has 0.85."),
            "ascend-legacy": N_("Share of the NPU's (or GPU's) memory that the engine may take; "
                                "the CANN recipe (Atlas A2) has 0.85."),
        },
    ),
    Setting(
        "max_model_len", int, 8192, N_("Context length"),
        N_("Tokens of a page and its output together."),
        Section.ENGINE, Applies.ENGINE_RESTART, minimum=1024, maximum=131072, step=1024,
        unit="tokens", engines=_LOCAL,
    ),
    Setting(
        "dtype", str, "auto", N_("Number format"),
        N_("Precision of weights and computation; auto is what the model was published in."),
        Section.ENGINE, Applies.ENGINE_RESTART,
        choices={"auto": N_("Auto"), "bfloat16": "bfloat16", "float16": "float16",
                 "float32": "float32"}, engines=_LOCAL,
    ),
    Setting(
        "quantization", str, "none", N_("Quantization"),
        N_("Store the weights in a smaller format when memory is short."),
        Section.ENGINE, Applies.ENGINE_RESTART,
        choices={"none": N_("None"), "fp8": "FP8", "bitsandbytes": "bitsandbytes",
                 "awq": "AWQ", "gptq": "GPTQ", "compressed-tensors": "compressed-tensors"},
        engines=_LOCAL,
    ),
    Setting(
        "batched_tokens", int, 0, N_("Tokens a step"),
        N_("Most tokens that the engine works on in one step (max_num_batched_tokens): how many "
           "pages are taken in together; 0 lets Verso choose."),
        Section.ENGINE, Applies.ENGINE_RESTART, minimum=0, maximum=1048576, step=1024,
        unit="tokens", engines=_VLLM, shapes_result=False,
    ),
    Setting(
        "chunked_prefill", bool, True, N_("Chunked prefill"),
        N_("Take in a page's tokens in pieces between the steps of other pages."),
        Section.ENGINE, Applies.ENGINE_RESTART, engines=_VLLM, shapes_result=False,
    ),
    Setting(
        "prefix_caching", bool, False, N_("Prefix caching"),
        N_("Keep the computation of equal beginnings. Pages differ from their first token on: it "
           "costs memory and saves nothing, except where the same page is read again."),
        Section.ENGINE, Applies.ENGINE_RESTART, engines=_VLLM, shapes_result=False,
    ),
    Setting(
        "eager", bool, False, N_("Eager mode"),
        N_("Run without compiled graphs: the engine starts sooner and is slower."),
        Section.ENGINE, Applies.ENGINE_RESTART, engines=_LOCAL - {"ascend"}, shapes_result=False,
        helps={"ascend-legacy": N_("Run without captured graphs on a GPU: the engine starts "
                                   "sooner and is slower. On an NPU this engine always does.")},
    ),
    Setting(
        "npu_graphs", bool, False, N_("Graph mode"),
        N_("Compile the model into graphs for the NPU: the engine starts later and may be faster. "
           "Off is eager mode, as the CANN recipe (Atlas A2) runs."),
        Section.ENGINE, Applies.ENGINE_RESTART, engines=frozenset({"ascend"}),
        shapes_result=False,
    ),
    Setting(
        "tensor_parallel", int, 1, N_("Tensor parallel"),
        N_("Devices that share one copy of the model."),
        Section.ENGINE, Applies.ENGINE_RESTART, minimum=1, maximum=64, step=1, engines=_LOCAL,
        shapes_result=False,
        helps={"ascend": N_("NPUs that share one copy of the model."),
               "ascend-legacy": N_("NPUs (or GPUs) that share one copy of the model.")},
    ),
    Setting(
        "data_parallel", int, 1, N_("Data parallel"),
        N_("Groups of devices that read pages side by side. This model's experts are spread over "
           "all of them, so that they step together; a server for each device is faster."),
        Section.ENGINE, Applies.ENGINE_RESTART, minimum=1, maximum=64, step=1, engines=_VLLM,
        shapes_result=False,
    ),
    Setting(
        "engine_cores", int, 0, N_("Engine cores"),
        N_("Processes of vLLM's engine that share a device. The device waits while one prepares "
           "its next step; with two, the other computes meanwhile. Each holds a copy of the "
           "weights and its share of the memory, and they start one after the other. 0: two where "
           "one GPU has room for them and many pages may be in flight, else one."),
        Section.ENGINE, Applies.ENGINE_RESTART, minimum=0, maximum=8, step=1,
        engines=frozenset({"vllm"}), shapes_result=False,
    ),
    Setting(
        "pipeline_parallel", int, 1, N_("Pipeline parallel"),
        N_("Devices that each hold some of the model's layers."),
        Section.ENGINE, Applies.ENGINE_RESTART, minimum=1, maximum=64, step=1, engines=_VLLM,
        shapes_result=False,
    ),
    Setting(
        "block_size", int, 0, N_("Cache block"),
        N_("Tokens of a block of the KV cache; 0 lets vLLM choose."),
        Section.ENGINE, Applies.ENGINE_RESTART, minimum=0, maximum=1024, step=16,
        unit="tokens", engines=_VLLM, shapes_result=False,
        check=lambda value: int(value) % 16 == 0,
        words=N_("0, or a multiple of 16 up to 1024"),
    ),
    Setting(
        "swap_space", int, 0, N_("Swap space"),
        N_("Memory of this machine, for each device, to which vLLM 0.8.5 may put pages aside "
           "when the KV cache is full; 0: it reads them again."),
        Section.ENGINE, Applies.ENGINE_RESTART, minimum=0, maximum=1024, step=1, unit="GiB",
        engines=_LEGACY, shapes_result=False,
    ),
    Setting(
        "speculative", int, 0, N_("Speculative tokens"),
        N_("Tokens guessed ahead from what the page has said before, then checked in one step "
           "(n-gram speculation, where the installed vLLM has it); 0: none."),
        Section.ENGINE, Applies.ENGINE_RESTART, minimum=0, maximum=16, step=1, engines=_VLLM,
        shapes_result=False,
    ),
    Setting(
        "image_workers", int, 0, N_("Image workers"),
        N_("Threads that prepare page images for the engine; 0 takes as many as the processor "
           "has cores, at most 16."),
        Section.ENGINE, Applies.ENGINE_RESTART, minimum=0, maximum=64, step=1, engines=_VLLM,
        shapes_result=False,
    ),
    Setting(
        "fast_mask", bool, True, N_("Fast vision mask"),
        N_("Replace the vision encoder's slow loop by one operation where the installed vLLM "
           "still has it; the result is the same."),
        Section.ENGINE, Applies.ENGINE_RESTART, engines=_VLLM, shapes_result=False,
    ),
    Setting(
        "fast_attention", bool, True, N_("Fast vision attention"),
        N_("Compute the vision encoder's attention in one kernel of Verso's own where there is an "
           "NVIDIA GPU; results differ from vLLM's by less than the number format's rounding."),
        Section.ENGINE, Applies.ENGINE_RESTART, engines=frozenset({"vllm"}), shapes_result=False,
    ),
    Setting(
        "raw_pages", bool, True, N_("Pages cut on the device"),
        N_("Hand pages to the engine as they are and cut them into the model's views on the "
           "device instead of on the processor; the result is the same to the bit."),
        Section.ENGINE, Applies.ENGINE_RESTART, engines=frozenset({"vllm"}), shapes_result=False,
    ),
    Setting(
        "encoder_graphs", bool, True, N_("Vision graphs"),
        N_("Capture the vision encoder's work for some numbers of pages and start it as a whole; "
           "takes some gigabytes of device memory where they are free. Needs “Pages cut on the "
           "device”."),
        Section.ENGINE, Applies.ENGINE_RESTART, engines=frozenset({"vllm"}), shapes_result=False,
    ),
)
