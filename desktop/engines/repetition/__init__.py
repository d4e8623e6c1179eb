"""What the loop guard (:mod:`desktop.engines.looping`) is made of."""
