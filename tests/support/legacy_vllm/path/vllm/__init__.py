"""What the engine ``ascend-legacy`` uses of vLLM 0.8.5, for tests: same names, same signatures (a
test compares them with the real sources), and behind them a recital instead of a model."""

__version__ = "0.8.5.post1"
