"""The page “Benchmark”: what is to be measured, the measurement while it runs, and its figures."""
