"""Bitmaps of pages for whoever shows or exports them: the same pixels that the engine read."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec

from desktop.intake.errors import PasswordNeeded
from desktop.intake.model import RenderedPage, RenderRequest
from desktop.jobs.documents import Documents
from desktop.jobs.events import DocumentState
from desktop.jobs.journal import Journal
from desktop.jobs.reading import Reading
from desktop.jobs.records import PageRow
from desktop.jobs.requests import replace_request, request_for
from desktop.settings import BY_KEY, Values


class Bitmaps:
    """Used on the session's loop only."""

    def __init__(self, journal: Journal, documents: Documents, reading: Reading,
                 values: Callable[[], Values]) -> None:
        """VALUES: those in force."""
        self._journal = journal
        self._documents = documents
        self._reading = reading
        self._values = values

    async def bitmap(self, row: PageRow) -> RenderedPage:
        """The upright bitmap: that of the page in flight, else drawn as when it was read."""
        run = self._reading.runs.get(row.key)
        rotation = row.rotation
        if run is not None:
            await asyncio.wait([run.drawn])
            rotation = run.rotation
            if run.rendered is not None and not rotation:
                with contextlib.suppress(OSError):  # it ended meanwhile: draw it again
                    return _copy(run.rendered)
        return await self._reading.render(
            replace_request(self._request(row), clockwise=rotation,
                            password=self._documents.passwords.get(row.key.document_id)),
            priority=0)

    async def thumbnail(self, row: PageRow, side: int) -> RenderedPage:
        """The upright page, its longer side SIDE pixels."""
        run = self._reading.runs.get(row.key)
        return await self._reading.render(
            replace_request(self._request(row), max_side=side,
                            clockwise=run.rotation if run is not None else row.rotation,
                            password=self._documents.passwords.get(row.key.document_id)),
            priority=2)

    def _request(self, row: PageRow) -> RenderRequest:
        """How the page was drawn when it was read, or would be now; raises PasswordNeeded."""
        document = self._documents.row(row.key.document_id)
        if document.state is DocumentState.PASSWORD:
            raise PasswordNeeded()
        used = self._journal.settings_used(row.fingerprint) if row.state.final else {}
        values = Values({key: value for key, value in used.items() if key in BY_KEY}) \
            if used else self._values()
        return request_for(values, document.path, row.key.number)


def _copy(rendered: RenderedPage) -> RenderedPage:
    """The same bitmap under a name of its own: a link where the file system has them."""
    target = Path(rendered.image).with_name(f"shared-{os.urandom(8).hex()}.ppm")
    try:
        os.link(rendered.image, target)
    except OSError:
        shutil.copyfile(rendered.image, target)
    return msgspec.structs.replace(rendered, image=str(target), words="")
