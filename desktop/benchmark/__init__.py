"""Measuring how fast pages are read, with the engine, the worker and the drawing of real use.

The way of a measurement: :mod:`plan` says what is measured, :mod:`workload` which pages,
:mod:`runner` drives the client as the conversion does, :mod:`metrics` computes, :mod:`report`
writes. Definitions are those of ``vllm bench serve``; docs/benchmark.md gives them in words.
"""
