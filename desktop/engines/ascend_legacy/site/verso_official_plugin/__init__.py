"""A plugin of vLLM 0.8.5 that brings the model's official code into each of its processes.

With several devices vLLM starts further processes, which know nothing of a model that was
registered in the first. Does nothing in a vLLM that was not started by Verso's engine.
"""


def register() -> None:
    """Called by vLLM once in each process."""
    import os

    if os.environ.get("VERSO_OFFICIAL_CODE"):
        from desktop.engines.ascend_legacy import official

        official.load_wanted()
