"""What can be wrong with a file or a page, each with its own code and a way out.

Errors arise in a drawing process and are shown in the application: they cross as
:class:`Failure` (code and values) and become the same class again, so that callers catch
``PasswordNeeded`` and not a string. No sentence names the file or page: whoever shows an error
shows them beside it.
"""

from __future__ import annotations

from typing import Any, Dict, Union

import msgspec

from desktop.errors import Problem, VersoError
from desktop.i18n import N_, _

Value = Union[int, float, str]


class IntakeError(VersoError):
    """Base of everything that can be wrong with a file or a page."""

    code = "intake.error"
    message = N_("The file could not be read.")
    hint = N_("Open it in another program to see whether it is whole.")


# --- files ------------------------------------------------------------------------------------


class FileMissing(IntakeError):
    """There is no such file."""

    code = "intake.file_missing"
    message = N_("The file does not exist.")
    hint = N_("It was moved, renamed or deleted: add it again from where it is now.")


class NotAllowed(IntakeError):
    """The system does not let us read it."""

    code = "intake.not_allowed"
    message = N_("The file may not be read.")
    hint = N_("Change its permissions or copy it to a folder of your own.")


class NotADocument(IntakeError):
    """Its content is of no kind that can be read."""

    code = "intake.not_a_document"
    message = N_("This is no document or image that Verso reads ({found}).")
    hint = N_("PDF, PNG, JPEG, TIFF, WebP, BMP, GIF, JPEG 2000, HEIC, AVIF, XPS, EPUB, CBZ and SVG "
              "are read; the content decides, not the name.")

    def __init__(self, *, detail: str = "", found: str = N_("unknown content")) -> None:
        super().__init__(detail=detail, found=found)

    def problem(self) -> Problem:
        plain = super().problem()
        return plain._replace(message=_(self.message).format(found=_(self.values["found"])))


class Unreadable(IntakeError):
    """It is of a kind we read, and broken."""

    code = "intake.unreadable"
    message = N_("The file is damaged and cannot be opened.")
    hint = N_("Download or copy it again, or save it anew in the program it comes from.")


class EmptyFile(Unreadable):
    """It has no bytes."""

    code = "intake.empty_file"
    message = N_("The file is empty (0 bytes).")
    hint = N_("Download or copy it again.")


class OpenTooSlow(Unreadable):
    """Opening it took longer than the time limit."""

    code = "intake.open_too_slow"
    message = N_("Opening the file took longer than {seconds:.0f} s and was given up.")
    hint = N_("Save it anew in the program it comes from, or split it.")


class ImageTooLarge(Unreadable):
    """Its header names more pixels than there is memory for."""

    code = "intake.image_too_large"
    message = N_("The image says it is {width} × {height} pixels, more than can be opened.")
    hint = N_("Save a smaller version of it, or allow more under Memory to draw a page.")


class PasswordNeeded(IntakeError):
    """It is encrypted and no password was given."""

    code = "intake.password_needed"
    message = N_("The document is protected by a password.")
    hint = N_("Enter its password, or give it with --password-file.")


class WrongPassword(IntakeError):
    """The password does not open it."""

    code = "intake.wrong_password"
    message = N_("The password does not open this document.")
    hint = N_("Check upper and lower case and try again.")


class NoPages(IntakeError):
    """It opens and holds no page."""

    code = "intake.no_pages"
    message = N_("The document has no pages.")
    hint = N_("Its list of pages is empty or damaged: save it anew in another PDF program.")


class NoDocuments(IntakeError):
    """Nothing to read was found in what was named."""

    code = "intake.no_documents"
    message = N_("No document or image was found there.")
    hint = N_("Name files, or a folder that holds some.")


# --- pages ------------------------------------------------------------------------------------


class PageFailed(IntakeError):
    """The page could not be drawn."""

    code = "intake.page_failed"
    message = N_("The page could not be drawn.")
    hint = N_("Print the page to a new PDF and add that.")


class PageTooSlow(PageFailed):
    """Drawing took longer than the time limit."""

    code = "intake.page_too_slow"
    message = N_("Drawing the page took longer than {seconds:.0f} s and was given up.")
    hint = N_("Allow more under Time to draw a page, or lower the resolution.")


class PageTooLarge(PageFailed):
    """Drawing took more memory than allowed."""

    code = "intake.page_too_large"
    message = N_("Drawing the page took more memory than allowed.")
    hint = N_("Lower the resolution, or allow more under Memory to draw a page.")


class ImageDamaged(PageFailed):
    """An image whose header is fine and whose pixels are not."""

    code = "intake.image_damaged"
    message = N_("The image is damaged and cannot be shown.")
    hint = N_("Download or copy it again, or scan it anew.")


class NoSuchPage(PageFailed):
    """The document has no page of that number (any more)."""

    code = "intake.no_such_page"
    message = N_("The document has no page {number}: it has {pages}.")
    hint = N_("The file changed since it was added: add it again.")


class NoSpace(PageFailed):
    """The bitmap could not be written."""

    code = "intake.no_space"
    message = N_("The drawn page could not be written to the cache folder.")
    hint = N_("Free some disk space and run the page again.")


class DrawingUnavailable(IntakeError):
    """The drawing processes do not start on this machine."""

    code = "intake.drawing_unavailable"
    message = N_("The program that draws pages does not start.")
    hint = N_("Run packaging/run again to repair the installation; the log says what is missing.")


# --- ranges -----------------------------------------------------------------------------------


class BadPageRange(IntakeError):
    """A page range cannot be understood, or names no page of the document."""

    code = "intake.bad_page_range"
    message = N_("“{text}” is no page range.")
    hint = N_("Write pages like 1-3,7 or 5- (from 5 on) or -3 (up to 3).")


class PageRangeOutside(BadPageRange):
    """The range is well written and names no page there is."""

    code = "intake.page_range_outside"
    message = N_("“{text}” names no page of this document: it has {pages}.")
    hint = N_("Choose pages from 1 to {pages}.")


# --- across the process boundary --------------------------------------------------------------


class Failure(msgspec.Struct, frozen=True, tag="failure"):
    """An error as it crosses from a drawing process."""

    code: str
    values: Dict[str, Value]
    detail: str = ""


_BY_CODE: dict[str, type[IntakeError]] = {}


def _collect(kind: type[IntakeError]) -> None:
    _BY_CODE[kind.code] = kind
    for narrower in kind.__subclasses__():
        _collect(narrower)


_collect(IntakeError)


def to_failure(error: IntakeError) -> Failure:
    """ERROR as data."""
    return Failure(error.code, error.values, error.detail)


def from_failure(failure: Failure) -> IntakeError:
    """The error that FAILURE was made from."""
    values: dict[str, Any] = {**failure.values}
    return _BY_CODE.get(failure.code, IntakeError)(detail=failure.detail, **values)
