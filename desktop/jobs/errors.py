"""What can go wrong with the queue itself: its journal, its sources, its pages."""

from __future__ import annotations

from desktop.errors import VersoError
from desktop.i18n import N_


class JournalBusy(VersoError):
    """Another process has the journal open."""

    code = "journal.busy"
    message = N_("Another Verso is already working with {path}.")
    hint = N_("Use the one that is open, or close it first.")


class JournalUnusable(VersoError):
    """The journal cannot be created or opened: permissions, a read-only or full disk."""

    code = "journal.unusable"
    message = N_("The list of documents cannot be kept in {path}.")
    hint = N_("Check that the folder exists, can be written to and has free space.")


class JournalTooNew(VersoError):
    """The journal was written by a later version of the program."""

    code = "journal.too_new"
    message = N_("{path} was written by a newer version of Verso.")
    hint = N_("Update Verso, or choose another folder.")


class JournalCorrupt(VersoError):
    """The journal was damaged and has been set aside; a new one was begun."""

    code = "journal.corrupt"
    message = N_("The list of documents was damaged; a new one was begun.")
    hint = N_("The damaged one is kept as {kept}. Add your documents again.")


class JournalWriteFailed(VersoError):
    """A result could not be saved while pages were being read."""

    code = "journal.write_failed"
    message = N_("A page's result could not be saved to {path}.")
    hint = N_("Free some disk space, then start again; finished pages are kept.")


class UnknownDocument(VersoError):
    """An id that no document of the queue has (it was removed meanwhile)."""

    code = "jobs.unknown_document"
    message = N_("The document is no longer in the queue.")
    hint = N_("Add it again.")


class UnknownPage(VersoError):
    """An id that no page of the queue has (its document was removed meanwhile)."""

    code = "jobs.unknown_page"
    message = N_("The page is no longer in the queue.")
    hint = N_("Add its document again.")


class SourceMissing(VersoError):
    """The file is gone since it was added."""

    code = "source.missing"
    message = N_("{name} is no longer where it was.")
    hint = N_("Put it back and retry; pages that were read are kept.")


class SourceChanged(VersoError):
    """The file's content differs from what was added."""

    code = "source.changed"
    message = N_("{name} has changed since its pages were read.")
    hint = N_("Retry to read it anew, or remove it; pages that were read are kept until then.")


class PageCutOff(VersoError):
    """The engine reached its limit of tokens (finish ``length``)."""

    code = "page.length"
    message = N_("The page is longer than the engine's limit; its end is missing.")
    hint = N_("Raise the token limit and read the page again.")


class PageCutAt(PageCutOff):
    """The same where the limit is known, and is what was asked for."""

    message = N_("The page is longer than the limit of {tokens} tokens; its end is missing.")
    hint = N_("Raise “{title}” ({flag}) in the settings and read the page again.")


class PageFilledContext(PageCutOff):
    """The same where the model's context left less than what was asked for."""

    message = N_("The page is longer than the {tokens} tokens that the model's context leaves for "
                 "its text; its end is missing.")
    hint = N_("Raise “Context length” if there is memory for it, or split the page, then read it "
              "again.")


class PageLooped(VersoError):
    """The engine repeated itself and was stopped (finish ``loop``)."""

    code = "page.loop"
    message = N_("The engine began to repeat itself and was stopped.")
    hint = N_("Check the end of the page; read it again with another crop mode or resolution.")


class PageEmpty(VersoError):
    """The engine found nothing on a page that is not blank (finish ``empty``)."""

    code = "page.empty"
    message = N_("No text was found on the page.")
    hint = N_("Look at the page; if there is text on it, read it again at a higher resolution.")


class PageFailed(VersoError):
    """The engine gave the page up without saying why."""

    code = "page.failed"
    message = N_("The engine could not read the page.")
    hint = N_("Read it again; the log says more.")


class PageKilledWorker(VersoError):
    """The worker died several times while it read this page."""

    code = "page.worker_died"
    message = N_("The engine stopped {times} times while reading this page; it was given up.")
    hint = N_("Lower the resolution or the pages in flight, then read it again.")


class PageStalled(VersoError):
    """The engine went silent every time it read this page."""

    code = "page.stalled"
    message = N_("The engine stopped or fell silent {times} times while reading this page, at last "
                 "for {seconds} s; it was given up.")
    hint = N_("Raise “{title}” ({flag}) in the settings if it only needs longer, or lower the "
              "resolution, then read it again.")


class SessionClosed(VersoError):
    """A call that came while or after the session was closed."""

    code = "jobs.closed"
    message = N_("Verso is closing.")
    hint = N_("Start it again; everything finished is kept.")
