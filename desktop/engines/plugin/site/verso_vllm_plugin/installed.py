"""What installed packages offer, read from their source: nothing of them is imported for it.

vllm-ascend loads its operators while it is imported, and what it replaces in vLLM depends on the
order in which modules are imported: a repair that only wants to know must not change that.

Standard library only.
"""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path
from typing import Iterator, List, Optional, Tuple, Union

ASCEND_DECODERS = ("vllm_ascend.ops.qwen2_decoder",
                   "vllm_ascend.patch.worker.patch_deepencoder2")
"""Modules in which vllm-ascend has a visual decoder of its own: from 0.19 on, in 0.18."""


def folder(package: str) -> Optional[Path]:
    """Where the top-level PACKAGE is; None: not installed."""
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        return None
    places = list(spec.submodule_search_locations or ()) if spec is not None else []
    return Path(places[0]) if places else None


def source(module: str, package: Optional[Path]) -> str:
    """The text of MODULE, whose top-level package is in the folder PACKAGE; empty: not there."""
    if package is None:
        return ""
    place = package.joinpath(*module.split(".")[1:])
    for file in (place.with_suffix(".py"), place / "__init__.py"):
        try:
            return file.read_text(encoding="utf-8")
        except OSError:
            continue
    return ""


def ascend_decoder(package: Optional[Path]) -> Tuple[str, Optional[ast.Module]]:
    """The module with the visual decoder of the vllm-ascend in the folder PACKAGE: its name and
    what is in it. Empty and None: it has none."""
    for module in ASCEND_DECODERS:
        text = source(module, package)
        if text:
            return module, ast.parse(text)
    return "", None


def own_mask(decoder: Optional[ast.Module]) -> bool:
    """Whether DECODER makes the encoder's mask in a function of its own."""
    return decoder is not None and any(
        isinstance(node, ast.FunctionDef) and node.name.startswith("_create")
        and node.name.endswith("mask")
        for node in ast.walk(decoder))


def find_class(tree: Optional[ast.Module], name: str) -> Optional[ast.ClassDef]:
    """The class NAME in TREE."""
    nodes: List[ast.stmt] = tree.body if tree is not None else []
    return next((node for node in nodes
                 if isinstance(node, ast.ClassDef) and node.name == name), None)


def sets(owner: ast.ClassDef, attribute: str) -> bool:
    """Whether the class OWNER gives ATTRIBUTE to itself or to what is made of it."""
    for node in _assigned(owner):
        if isinstance(node, ast.Attribute) and node.attr == attribute:
            return True
    return any(isinstance(node, ast.Name) and node.id == attribute
               for statement in owner.body for node in _targets(statement)) or any(
        isinstance(statement, ast.FunctionDef) and statement.name == attribute
        for statement in owner.body)


def reads(tree: ast.AST, attribute: str) -> bool:
    """Whether anything in TREE asks for ATTRIBUTE."""
    return any(isinstance(node, ast.Attribute) and node.attr == attribute
               and isinstance(node.ctx, ast.Load) for node in ast.walk(tree))


def _assigned(owner: ast.ClassDef) -> Iterator[ast.expr]:
    for node in ast.walk(owner):
        yield from _targets(node)


def _targets(node: Union[ast.AST, ast.stmt]) -> List[ast.expr]:
    if isinstance(node, ast.Assign):
        return node.targets
    return [node.target] if isinstance(node, ast.AnnAssign) else []
