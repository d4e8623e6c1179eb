"""In the place of the model's official code, where that is not to be had: DeepSeek's language model
as vLLM 0.8.5 has it, behind pages of which nothing is seen but how many tokens they take."""

import torch
from PIL import Image
from process.image_process import DeepseekOCR2Processor
from transformers import BatchFeature
from vllm.model_executor.models.interfaces import SupportsMultiModal, SupportsPP
from vllm.model_executor.models.utils import (
    AutoWeightsLoader,
    init_vllm_registered_model,
    maybe_prefix,
    merge_multimodal_embeddings,
)
from vllm.multimodal import MULTIMODAL_REGISTRY
from vllm.multimodal.inputs import MultiModalFieldConfig
from vllm.multimodal.processing import (
    BaseMultiModalProcessor,
    BaseProcessingInfo,
    PromptReplacement,
)
from vllm.multimodal.profiling import BaseDummyInputsBuilder

SEEN = ("sam_model", "qwen2_model", "projector", "view_seperator")
"""Parts of the published weights that this model does without."""


class Info(BaseProcessingInfo):
    def get_supported_mm_limits(self):
        return {"image": None}


class Dummies(BaseDummyInputsBuilder):
    def get_dummy_text(self, mm_counts):
        return "<image>" * mm_counts.get("image", 0)

    def get_dummy_mm_data(self, seq_len, mm_counts):
        pages = [Image.new("RGB", (1536, 1536))] * mm_counts.get("image", 0)
        return {"image": DeepseekOCR2Processor().tokenize_with_images(pages)} if pages else {}


class Processor(BaseMultiModalProcessor):
    def _call_hf_processor(self, prompt, mm_data, mm_kwargs):
        if not mm_data:
            return self.info.get_tokenizer()(prompt, return_tensors="pt")
        [(ids, tokens)] = mm_data["images"]
        return BatchFeature({"input_ids": [ids], "views": [[tokens]]}, tensor_type="pt")

    def _get_mm_fields_config(self, hf_inputs, hf_processor_mm_kwargs):
        return {"views": MultiModalFieldConfig.batched("image")}

    def _get_prompt_updates(self, mm_items, hf_processor_mm_kwargs, out_mm_kwargs):
        image = self.info.get_tokenizer().vocab["<image>"]
        return [PromptReplacement(
            modality="image", target=[image],
            replacement=lambda item: [image] * int(out_mm_kwargs["views"][item][0]))]


@MULTIMODAL_REGISTRY.register_processor(Processor, info=Info, dummy_inputs=Dummies)
class DeepseekOCR2ForCausalLM(torch.nn.Module, SupportsMultiModal, SupportsPP):
    def __init__(self, *, vllm_config, prefix=""):
        super().__init__()
        config = vllm_config.model_config.hf_config.text_config
        self.image = DeepseekOCR2Processor().tokenizer.vocab["<image>"]
        self.language_model = init_vllm_registered_model(
            vllm_config=vllm_config, hf_config=config, prefix=maybe_prefix(prefix, "language"),
            architectures=["DeepseekForCausalLM"])
        self.make_empty_intermediate_tensors = self.language_model.make_empty_intermediate_tensors

    def get_language_model(self):
        return self.language_model

    def get_multimodal_embeddings(self, **data):
        if data.get("views") is None:
            return None
        wide = self.language_model.config.hidden_size
        return [torch.zeros(int(tokens), wide, dtype=torch.bfloat16)
                for tokens in data["views"].flatten()]

    def get_input_embeddings(self, input_ids, multimodal_embeddings=None):
        made = self.language_model.get_input_embeddings(input_ids)
        if multimodal_embeddings is None:
            return made
        return merge_multimodal_embeddings(input_ids, made, multimodal_embeddings, self.image)

    def forward(self, input_ids, positions, intermediate_tensors=None, inputs_embeds=None, **data):
        if intermediate_tensors is None and inputs_embeds is None:
            inputs_embeds = self.get_input_embeddings(
                input_ids, self.get_multimodal_embeddings(**data))
            input_ids = None
        return self.language_model(input_ids, positions, intermediate_tensors,
                                   inputs_embeds=inputs_embeds)

    def compute_logits(self, hidden_states, sampling_metadata):
        return self.language_model.compute_logits(hidden_states, sampling_metadata)

    def load_weights(self, weights):
        return AutoWeightsLoader(self).load_weights(
            (f"language_model.{name}", tensor) for name, tensor in weights
            if not any(part in name for part in SEEN))
