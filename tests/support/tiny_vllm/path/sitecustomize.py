"""Lets PyPI's torchvision be imported beside a torch that is built for processors only.

That wheel's native part is built for CUDA and cannot be loaded there; so the operators it would
declare are missing, and the package's own Python part, which registers something for them, raises
while it is imported. vLLM needs only its Python transforms: declaring the two names is enough.
"""

import importlib.abc
import importlib.metadata
import sys


class _DeclareOperators(importlib.abc.MetaPathFinder):
    """Acts once, just before torchvision is looked for; finds nothing itself."""

    def find_spec(self, name, path=None, target=None):
        if name == "torchvision":
            sys.meta_path.remove(self)
            if "+" not in importlib.metadata.version("torchvision"):  # "+cpu" has its own
                import torch

                if not torch.version.cuda:
                    schema = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
                    for operator in ("nms", "qnms"):
                        torch.library.define(f"torchvision::{operator}", schema)


sys.meta_path.insert(0, _DeclareOperators())
