"""What stands for vLLM's LLMEngine in tests: it takes requests as that does, has the official
processor's tokens, applies the official logits processors, and writes what it is told to.

``VERSO_RECITAL`` names a JSON file: ``text`` (what every page gets), ``fail`` (what the start dies
of), ``die`` (what a step dies of) ``after`` so many tokens of a page, ``delay`` seconds a step,
``blocks`` of the KV cache, ``ignored`` (a page with more tokens does not fit into it). What it was
given is written, a JSON object a line, to the file that ``VERSO_RECITAL_LOG`` names.
"""

import asyncio
import json
import os
import sys
import time
from types import SimpleNamespace

from vllm.outputs import CompletionOutput, RequestOutput

BLOCK = 128


def note(event, **values):
    """Write a line of the log."""
    with open(os.environ["VERSO_RECITAL_LOG"], "a", encoding="utf-8") as file:
        file.write(json.dumps({"event": event, **values}, default=str) + "\n")


def script():
    with open(os.environ["VERSO_RECITAL"], encoding="utf-8") as file:
        return json.load(file)


def configured(arguments):
    """The part of VllmConfig that is looked at, for the engine arguments ARGUMENTS."""
    from vllm.model_executor.layers import fused_moe
    from vllm.model_executor.models.registry import ModelRegistry

    model = sys.modules["deepseek_ocr2"].DeepseekOCR2ForCausalLM
    note("arguments", given=vars(arguments), v1=os.environ.get("VLLM_USE_V1"),
         step_seconds=os.environ.get("VLLM_ENGINE_ITERATION_TIMEOUT_S"),
         registered=list(ModelRegistry.get_supported_archs()),
         plugins=sys.modules["vllm.plugins"].plugins_loaded,
         experts=getattr(getattr(model, "moe", None), "__module__", ""),
         replaced=hasattr(fused_moe.fused_moe, "verso_replaces"),
         config=sys.modules["config"].__file__,
         constants={name: getattr(sys.modules["config"], name)
                    for name in ("MODEL_PATH", "PROMPT", "CROP_MODE")})
    return SimpleNamespace(
        model_config=SimpleNamespace(
            model=arguments.model, max_model_len=arguments.max_model_len,
            enforce_eager=arguments.enforce_eager, use_async_output_proc=False),
        cache_config=SimpleNamespace(
            num_gpu_blocks=arguments.num_gpu_blocks_override or script().get("blocks", 4096),
            block_size=arguments.block_size or BLOCK),
        parallel_config=SimpleNamespace(pipeline_parallel_size=1),
        scheduler_config=SimpleNamespace(policy="fcfs"))


def placed(prompt):
    """The token ids of a request's PROMPT as the official processor made them."""
    return prompt["multi_modal_data"]["image"][0][0].tolist()[0]


class Scores(list):
    """A row of logits where there is no torch."""

    def clone(self):
        return Scores(self)


def row(wanted, second):
    """Logits in which the token WANTED is the best and SECOND comes next."""
    size = max(wanted, second) + 1
    import torch

    values = torch.zeros(size) if hasattr(torch, "zeros") else Scores([0.0] * size)
    values[second], values[wanted] = 1.0, 2.0
    return values


class Recital:
    """One engine; see the module."""

    process = staticmethod(placed)
    apply = None
    """vLLM's own way of applying logits processors, where that is there."""

    def __init__(self, vllm_config, **_options):
        self.script = script()
        if self.script.get("fail"):
            raise RuntimeError(self.script["fail"])
        self.__dict__.update(vars(vllm_config))
        self.model_executor = SimpleNamespace(shutdown=lambda: note("shutdown"))
        self.tokenizer = sys.modules["config"].TOKENIZER
        self.requests = {}

    async def add_request_async(self, request_id, prompt=None, params=None, arrival_time=None,
                                lora_request=None, prompt_adapter_request=None,
                                trace_headers=None, priority=0, *, inputs=None):
        ids = self.process(prompt)
        if len(ids) > self.model_config.max_model_len:
            raise ValueError(f"The decoder prompt (length {len(ids)}) is too long")
        image = prompt["multi_modal_data"]["image"][0]
        note("request", id=request_id, prompt=prompt["prompt"], ids=ids[:64], length=len(ids),
             size=image[-1][0], shapes=[list(getattr(part, "shape", ())) for part in image],
             priority=priority, kind=params.output_kind.name, max_tokens=params.max_tokens,
             temperature=params.temperature, stop=params.stop,
             special=params.skip_special_tokens,
             processors=[[type(each).__name__, each.ngram_size, each.window_size,
                          sorted(each.whitelist_token_ids)]
                         for each in params.logits_processors or ()])
        text = "x" if request_id.startswith("warm-up") else self.script.get("text", "")
        recited = self.tokenizer.encode(text, add_special_tokens=False)
        self.requests[request_id] = SimpleNamespace(
            ids=ids, params=params, script=[*recited, self.tokenizer.eos_token_id], done=[],
            said="", warm=request_id.startswith("warm-up"))

    def abort_request(self, request_id):
        for each in [request_id] if isinstance(request_id, str) else request_id:
            if self.requests.pop(each, None) is not None:
                note("abort", id=each)

    def has_unfinished_requests_for_virtual_engine(self, virtual_engine):
        return bool(self.requests)

    async def check_health_async(self):
        return None

    async def stop_remote_worker_execution_loop_async(self):
        return None

    async def step_async(self, virtual_engine):
        return await asyncio.get_running_loop().run_in_executor(None, self.step)

    def step(self):
        time.sleep(self.script.get("delay", 0))
        outputs = []
        for name, request in list(self.requests.items()):
            if not request.warm and len(request.done) == self.script.get("after", -1):
                raise RuntimeError(self.script["die"])
            output = self.one(name, request)
            outputs.append(output)
            if output.finished:
                self.requests.pop(name, None)
        return outputs

    def one(self, name, request):
        """The next token of REQUEST as an output, of which only the new text is told."""
        if not request.warm and len(request.ids) > self.script.get("ignored", 1 << 30):
            return RequestOutput(
                request_id=name, prompt=None, prompt_token_ids=request.ids, prompt_logprobs=None,
                finished=True, outputs=[CompletionOutput(0, "", [], None, None, "length", None)])
        end = self.tokenizer.eos_token_id
        token = request.script[len(request.done)]
        scores = row(token, end)
        if self.apply is not None:
            scores = self.apply(scores, request.params.logits_processors or [], request.done,
                                request.ids)
        else:
            for processor in request.params.logits_processors or ():
                scores = processor(request.done, scores)
        token = max((token, end), key=lambda each: float(scores[each]))
        request.done.append(token)
        said = self.tokenizer.decode(request.done, skip_special_tokens=False)
        if token == end:  # vLLM's V0 engine takes its text away again.
            said = request.said
        new, request.said = said[len(request.said):], said
        reason = ("stop" if token == end
                  else "length" if len(request.done) >= request.params.max_tokens else None)
        first = len(request.done) == 1
        return RequestOutput(
            request_id=name, prompt=None, prompt_token_ids=request.ids if first else None,
            prompt_logprobs=None, finished=reason is not None,
            outputs=[CompletionOutput(0, new, [token], None, None, reason, None)])
