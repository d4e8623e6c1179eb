"""Several things at once, all or none."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

_T = TypeVar("_T")


async def together(*work: Coroutine[Any, Any, _T]) -> list[_T]:
    """Do WORK at once; the results in its order.

    Unlike a TaskGroup it raises the first error itself, not a group, once the others have been
    cancelled and have ended.
    """
    tasks = [asyncio.ensure_future(each) for each in work]
    try:
        return await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
