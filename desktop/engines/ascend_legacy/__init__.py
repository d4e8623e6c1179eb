"""The engine ``ascend-legacy``: the model's official code on vLLM 0.8.5 (its V0 engine).

On an Ascend NPU with vllm-ascend 0.8.5rc1 it runs the prepared copy of that code, on an NVIDIA GPU
the code as it is; what is installed decides. ``stack`` says which it is, ``official`` brings the
code into the process, ``arguments`` and ``loading`` start vLLM, ``pages`` prepares images with the
code's own processor, ``engine`` is the engine. ``site`` holds the plugin through which further
processes of vLLM get the code.

Runs on Python 3.9 (with msgspec and Pillow), the oldest of that stack. vLLM, torch and the
official code are imported in ``start`` only.
"""
