"""The V0 engine's outside: a loop in ours, which steps the engine while there is work."""

import asyncio

import verso_recital


class AsyncEngineDeadError(RuntimeError):
    pass


class AsyncLLMEngine:
    def __init__(self, vllm_config):
        self.engine = verso_recital.Recital(vllm_config)
        self._streams = {}
        self._task = None
        self._work = None
        self._errored_with = None

    @classmethod
    def from_engine_args(cls, engine_args, start_engine_loop=True, usage_context=None,
                         stat_loggers=None):
        return cls(engine_args.create_engine_config(usage_context))

    @property
    def is_running(self):
        return self._task is not None and not self._task.done()

    @property
    def errored(self):
        return self._errored_with is not None

    @property
    def is_stopped(self):
        return self.errored or (self._task is not None and self._task.done())

    async def generate(self, prompt, sampling_params, request_id, lora_request=None,
                       trace_headers=None, prompt_adapter_request=None, priority=0):
        if self.errored:
            raise AsyncEngineDeadError("Background loop has errored already.")
        if self._task is None:
            self._work = asyncio.Event()
            self._task = asyncio.get_running_loop().create_task(self._run())
        stream = self._streams[request_id] = asyncio.Queue()
        try:
            await self.engine.add_request_async(
                request_id=request_id, prompt=prompt, params=sampling_params, priority=priority)
        except ValueError:
            self._streams.pop(request_id)
            raise
        self._work.set()
        try:
            while True:
                result = await stream.get()
                if isinstance(result, BaseException):
                    raise result
                yield result
                if result.finished:
                    return
        except asyncio.CancelledError:
            await self.abort(request_id)
            raise

    async def abort(self, request_id):
        if not self.is_running:
            raise AsyncEngineDeadError("Background loop is not running.")
        self._streams.pop(request_id, None)
        self.engine.abort_request([request_id])

    async def check_health(self):
        if self.is_stopped:
            raise AsyncEngineDeadError("Background loop is stopped.")
        await self.engine.check_health_async()

    def shutdown_background_loop(self):
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _run(self):
        try:
            while True:
                if not self.engine.has_unfinished_requests_for_virtual_engine(0):
                    self._work.clear()
                    await self._work.wait()
                for output in await self.engine.step_async(0):
                    stream = (self._streams.pop if output.finished else self._streams.get)(
                        output.request_id, None)
                    if stream is not None:
                        stream.put_nowait(output)
        except Exception as error:  # noqa: BLE001 - as vLLM's
            self._errored_with = error
            for stream in self._streams.values():
                stream.put_nowait(error)
