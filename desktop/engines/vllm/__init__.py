"""The engine that runs DeepSeek-OCR-2 with vLLM in the worker's own process.

``engine`` is the engine. ``versions`` knows what each vLLM needs, ``arguments`` turns settings
into vLLM's arguments, ``preflight`` and ``devices`` look before loading, ``images`` prepares
pages, ``failures`` explains what went wrong. vLLM and torch are imported in ``start`` only.
"""
