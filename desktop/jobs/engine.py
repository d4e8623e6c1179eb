"""The engine as the session sees it: loaded when needed, restarted between pages."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Protocol

from desktop.client.client import ClientEvent, EngineClient, WorkerDied
from desktop.client.endings import KeepsDying
from desktop.errors import Problem, VersoError, problem_of
from desktop.i18n import _
from desktop.jobs.events import EngineState, EngineView
from desktop.jobs.preparing import Prepared, needs_preparing, prepare
from desktop.protocol.messages import (
    EngineFailed,
    EngineLoading,
    EngineReady,
    LogLine,
    SubmitPage,
)
from desktop.settings import SETTINGS, Values

log = logging.getLogger(__name__)


class EngineOwner(Protocol):
    """Who hears of the engine; called on the session's loop."""

    def engine_changed(self, view: EngineView) -> None:
        """The state of the engine is another."""

    def engine_log(self, line: LogLine) -> None:
        """A line for the log."""

    def worker_died(self, event: WorkerDied) -> None:
        """The pages of the event are to be done again."""

    def page_event(self, event: object) -> None:
        """Anything about a page."""


class EngineLink:
    """One client, used on the session's loop only."""

    def __init__(self, owner: EngineOwner, deliver: Callable[[Callable[[], None]], None],
                 values: Values, extra: Mapping[str, str], interpreter: str | None) -> None:
        """DELIVER runs a function on the session's loop, from any thread."""
        self._owner = owner
        self._deliver = deliver
        self._values = values
        self._extra = dict(extra)
        self._interpreter = interpreter
        self._client: EngineClient | None = None
        self._started_with: Values | None = None
        self._worn = False
        self._preparation: _Preparation | None = None
        """What is being looked up before the next start, if anything is."""
        self.view = EngineView(values["engine"], EngineState.OFF)

    @property
    def ready(self) -> bool:
        """Whether pages can be handed over."""
        return self.view.state is EngineState.READY

    @property
    def failed(self) -> bool:
        """Whether it is down for good (until settings change or a person starts again)."""
        return self.view.state is EngineState.FAILED

    @property
    def outdated(self) -> bool:
        """Whether it should be started anew: it runs with settings that only a restart can
        change, or is worn."""
        return self._started_with is not None and (
            self._worn or bool(restart_for(self._started_with, self._values)))

    def wear(self) -> None:
        """It may be harmed: start it anew once no page is with it."""
        self._worn = True

    @property
    def capacity(self) -> int:
        """Pages it reads at once; 1 while that is not known."""
        chosen = int(self._values["concurrency"])
        return chosen or (self.view.ready.capacity if self.view.ready else 1)

    @property
    def model(self) -> str:
        """What it reads with, as it says itself."""
        return self.view.ready.model if self.view.ready else ""

    def set_values(self, values: Values) -> None:
        """Use VALUES; a restart that they need is due (see ``outdated``), not done."""
        before, self._values = self._values, values
        if self._client is not None and before["concurrency"] != values["concurrency"]:
            self._client.set_concurrency(values["concurrency"])
        if self._preparation is not None and self.outdated:
            self._start()  # it was about to be started: with these, then
        elif self.view.state is EngineState.FAILED and self.outdated:
            # It failed with the old ones: the next page may try with the new ones.
            self._started_with = None
            self._show(EngineView(values["engine"], EngineState.OFF))
        elif self._started_with is None and self.view.name != values["engine"]:
            self._show(EngineView(values["engine"], EngineState.OFF))
        elif self.view.outdated != self._outdated_settings():
            self._show(self.view)

    def ensure(self) -> None:
        """Start it unless it runs or has failed."""
        if self.view.state is EngineState.OFF:
            self._start()

    def restart(self) -> None:
        """Start it anew with the settings in force; no page may be with it."""
        self._start()

    def forget_failure(self) -> None:
        """A person wants another try."""
        if self.failed:
            self._show(EngineView(self._values["engine"], EngineState.OFF))

    def submit(self, page: SubmitPage) -> None:
        """Hand over a page."""
        assert self._client is not None
        self._client.submit(page)

    def cancel(self, wire_id: str) -> None:
        """Stop a page, wherever it is."""
        if self._client is not None:
            self._client.cancel(wire_id)

    def raise_page(self, wire_id: str) -> None:
        """A page that was handed over is wanted first."""
        if self._client is not None:
            self._client.raise_page(wire_id)

    def close(self) -> None:
        """End the worker; blocks."""
        preparation = self._preparation
        if preparation is not None:
            preparation.cancel.set()
            preparation.thread.join()
        if self._client is not None:
            self._client.close()

    def released(self) -> None:
        """It was closed, and others may use the device: it is started again when it is wanted."""
        self._preparation = None
        self._started_with = None
        self._worn = False
        self._show(EngineView(self._values["engine"], EngineState.OFF))

    # --- inside
    def _start(self) -> None:
        self._started_with = self._values
        self._worn = False
        before, self._preparation = self._preparation, None
        if before is None and not needs_preparing(self._values["engine"]):
            self._show(EngineView(self._values["engine"], EngineState.LOADING))
            try:
                self._begin(prepare(self._values, self._extra, self._interpreter))
            except VersoError as error:  # an engine that this version does not have
                self._show(replace(self.view, state=EngineState.FAILED,
                                   problem=error.problem()))
            return
        # One after the other: an earlier one may be ending the worker.
        self._preparation = _Preparation(self, self._values, self._client, before)
        self._show(EngineView(self._values["engine"], EngineState.LOADING,
                              _("Checking interpreter and model")))
        self._preparation.thread.start()

    def _begin(self, prepared: Prepared) -> None:
        """Start the worker."""
        assert self._started_with is not None
        values = self._started_with
        if self._client is None:
            self._client = EngineClient(self._arrived)
        self._client.set_concurrency(self._values["concurrency"])
        self._client.start(values["engine"], prepared.settings, interpreter=prepared.interpreter,
                           environment=prepared.environment)

    def _prepare(self, preparation: _Preparation) -> None:
        """On a thread of its own: look everything up, then go on on the session's loop."""
        if preparation.before is not None:
            preparation.before.cancel.set()
            preparation.before.thread.join()
            preparation.before = None
        prepared: Prepared | None = None
        problem: Problem | None = None
        try:
            prepared = prepare(preparation.values, self._extra, self._interpreter,
                               preparation.cancel)
        except VersoError as error:
            problem = error.problem()
        except Exception as error:
            log.exception("preparing the engine failed")
            problem = problem_of(error)
        if preparation.cancel.is_set():
            return
        if problem is not None and preparation.client is not None:
            preparation.client.close()  # one with other settings would go on holding the device
        self._deliver(lambda: self._prepared(preparation, prepared, problem))

    def _prepared(self, preparation: _Preparation, prepared: Prepared | None,
                  problem: Problem | None) -> None:
        if self._preparation is not preparation:
            return
        self._preparation = None
        if prepared is not None:
            self._begin(prepared)
        else:
            self._show(EngineView(preparation.values["engine"], EngineState.FAILED,
                                  problem=problem))

    def _arrived(self, event: ClientEvent) -> None:
        self._deliver(lambda: self._handle(event))

    def _handle(self, event: ClientEvent) -> None:
        if self._preparation is not None:
            # Of a worker whose time is over: only its pages matter.
            if isinstance(event, WorkerDied):
                self._owner.worker_died(event)
            if isinstance(event, (WorkerDied, EngineReady, EngineLoading, EngineFailed)):
                return
        match event:
            case EngineLoading(step, fraction):
                if self.view.state in (EngineState.LOADING, EngineState.RESTARTING):
                    self._show(EngineView(self.view.name, EngineState.LOADING, step, fraction))
            case EngineReady():
                self._show(EngineView(event.engine, EngineState.READY, ready=event))
            case EngineFailed(problem, fatal):
                if fatal:
                    self._show(EngineView(self.view.name, EngineState.FAILED,
                                          problem=problem.problem()))
                else:
                    self._show(replace(self.view, problem=problem.problem()))
            case WorkerDied(problem, _, None):
                self._show(EngineView(self.view.name, EngineState.FAILED,
                                      problem=self._cause(problem)))
                self._owner.worker_died(event)
            case WorkerDied(problem, _, pause):
                self._worn = False  # what comes is a new one
                self._show(EngineView(self.view.name, EngineState.RESTARTING, problem=problem,
                                      retry_in=pause or 0.0))
                self._owner.worker_died(event)
            case LogLine():
                self._owner.engine_log(event)
            case _:
                self._owner.page_event(event)

    def _cause(self, problem: Problem) -> Problem:
        """What the engine said before its worker ended tells more than that it ended; but where
        it has been given up, its "starts again by itself" no longer holds."""
        said = self.view.problem
        if said is None:
            return problem
        if problem.code == KeepsDying.code:
            return said._replace(message=problem.message, hint=problem.hint)
        return said

    def _outdated_settings(self) -> tuple[str, ...]:
        return () if self._started_with is None else restart_for(self._started_with, self._values)

    def _show(self, view: EngineView) -> None:
        self.view = replace(view, outdated=self._outdated_settings())
        self._owner.engine_changed(self.view)


class _Preparation:
    """One look at interpreter and model, on a thread of its own."""

    def __init__(self, link: EngineLink, values: Values, client: EngineClient | None,
                 before: _Preparation | None) -> None:
        self.values = values
        self.client = client
        self.before = before
        self.cancel = threading.Event()
        self.thread = threading.Thread(target=link._prepare, args=(self,),
                                       name="engine-preparation", daemon=True)


def restart_for(before: Values, after: Values) -> tuple[str, ...]:
    """Keys of the settings for which an engine started with BEFORE must be started again to
    run with AFTER; empty: it need not be."""
    if before["engine"] != after["engine"]:
        return ("engine",)
    engine = str(after["engine"])
    return tuple(s.key for s in SETTINGS if s.key not in INTAKE_ONLY
                 and s.restarts(engine, before[s.key], after[s.key]))


INTAKE_ONLY = frozenset({"page_memory"})
"""Settings that a restart makes effective, but of the drawing processes."""
