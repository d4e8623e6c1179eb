"""What the rendered page may load: our own scheme, and nothing else.

``verso-page://page/…`` serves the page template, its style, KaTeX and the crops of figures by
block id. There is no file access and no network: every other request is refused.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import PurePosixPath

from PySide6.QtCore import QBuffer, QByteArray, QFile, QIODevice, QObject
from PySide6.QtWebEngineCore import (
    QWebEngineProfile,
    QWebEngineScript,
    QWebEngineSettings,
    QWebEngineUrlRequestInfo,
    QWebEngineUrlRequestInterceptor,
    QWebEngineUrlRequestJob,
    QWebEngineUrlScheme,
    QWebEngineUrlSchemeHandler,
)

from desktop import paths
from desktop.ui.review.background import Background
from desktop.ui.review.crops import SCHEME, CropSource, crop_bytes

log = logging.getLogger(__name__)

PAGE_URL = f"{SCHEME}://page/page.html"

WORLD = QWebEngineScript.ScriptWorldId.ApplicationWorld
"""Our script's world: it sees the document, but content cannot reach it."""

_TYPES = {".html": b"text/html", ".css": b"text/css", ".woff2": b"font/woff2",
          ".woff": b"font/woff", ".ttf": b"font/ttf"}
_background = Background("verso-crops")


def register_scheme() -> None:
    """Make the scheme known to Chromium; must come before the first profile."""
    name = SCHEME.encode()
    if QWebEngineUrlScheme.schemeByName(name).name() == name:
        return
    scheme = QWebEngineUrlScheme(name)
    scheme.setSyntax(QWebEngineUrlScheme.Syntax.Host)
    # Not LocalScheme: file access is off, and that would refuse our own files with it.
    scheme.setFlags(QWebEngineUrlScheme.Flag.SecureScheme
                    | QWebEngineUrlScheme.Flag.CorsEnabled)
    QWebEngineUrlScheme.registerScheme(scheme)


class OnlyOurScheme(QWebEngineUrlRequestInterceptor):
    """Refuses every request but those to our scheme, and remembers what it refused."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.refused: list[str] = []
        """The last hundred refused addresses."""

    def interceptRequest(self, info: QWebEngineUrlRequestInfo) -> None:
        url = info.requestUrl()
        if url.scheme() != SCHEME:
            info.block(True)
            self.refused = [*self.refused[-99:], url.toString()]
            log.warning("The rendered page asked for %s; refused.", url.toString()[:200])


class PageFiles(QWebEngineUrlSchemeHandler):
    """Serves the scheme. Crops are cut or read on a thread of their own."""

    def __init__(self, crops: Callable[[str], CropSource | None],
                 parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._crops = crops

    def requestStarted(self, job: QWebEngineUrlRequestJob) -> None:
        parts = PurePosixPath(job.requestUrl().path().lstrip("/")).parts
        if parts[:1] == ("crop",) and len(parts) == 3:
            source = self._crops(parts[2])
            if source is None:
                job.fail(QWebEngineUrlRequestJob.Error.UrlNotFound)
                return
            _background.run(job, lambda: crop_bytes(source),
                            lambda data: self._reply_crop(job, data))
            return
        self._reply_file(job, parts)

    def _reply_file(self, job: QWebEngineUrlRequestJob, parts: tuple[str, ...]) -> None:
        kind = _TYPES.get(PurePosixPath(*parts).suffix if parts else "")
        folder = "katex" if parts[:1] == ("katex",) else "page"
        rest = parts[1:] if folder == "katex" else parts
        if kind is None or not rest or ".." in rest:
            job.fail(QWebEngineUrlRequestJob.Error.UrlNotFound)
            return
        path = paths.resources().joinpath(folder, *rest)
        if not path.is_file():
            job.fail(QWebEngineUrlRequestJob.Error.UrlNotFound)
            return
        _reply(job, kind, path.read_bytes())

    @staticmethod
    def _reply_crop(job: QWebEngineUrlRequestJob, data: bytes | None) -> None:
        if data is None:
            job.fail(QWebEngineUrlRequestJob.Error.UrlNotFound)
        else:
            _reply(job, b"image/png", data)


def _reply(job: QWebEngineUrlRequestJob, kind: bytes, data: bytes) -> None:
    buffer = QBuffer(job)
    buffer.setData(QByteArray(data))
    buffer.open(QIODevice.OpenModeFlag.ReadOnly)
    job.reply(QByteArray(kind), buffer)


def make_profile(files: PageFiles, parent: QObject) -> tuple[QWebEngineProfile, OnlyOurScheme]:
    """A profile that keeps nothing on disk and loads nothing but our scheme."""
    profile = QWebEngineProfile(parent)
    assert profile.isOffTheRecord()
    guard = OnlyOurScheme(profile)
    profile.setUrlRequestInterceptor(guard)
    profile.installUrlSchemeHandler(SCHEME.encode(), files)
    profile.setHttpCacheType(QWebEngineProfile.HttpCacheType.NoCache)
    profile.setPersistentCookiesPolicy(
        QWebEngineProfile.PersistentCookiesPolicy.NoPersistentCookies)
    profile.downloadRequested.connect(lambda request: request.cancel())
    settings = profile.settings()
    attribute = QWebEngineSettings.WebAttribute
    off = (attribute.JavascriptEnabled, attribute.JavascriptCanOpenWindows,
           attribute.JavascriptCanAccessClipboard, attribute.LocalStorageEnabled,
           attribute.LocalContentCanAccessRemoteUrls, attribute.LocalContentCanAccessFileUrls,
           attribute.PluginsEnabled, attribute.FullScreenSupportEnabled,
           attribute.WebGLEnabled, attribute.Accelerated2dCanvasEnabled,
           attribute.HyperlinkAuditingEnabled, attribute.AutoLoadIconsForPage,
           attribute.DnsPrefetchEnabled, attribute.ScreenCaptureEnabled,
           attribute.NavigateOnDropEnabled, attribute.PdfViewerEnabled,
           attribute.FocusOnNavigationEnabled)
    for name in off:
        settings.setAttribute(name, False)
    return profile, guard


def page_script() -> QWebEngineScript:
    """Our script with what it needs, for our own world."""
    channel = _qt_resource(":/qtwebchannel/qwebchannel.js")
    folder = paths.resources()
    parts = [channel] + [(folder / name).read_text(encoding="utf-8") for name in (
        "katex/katex.min.js", "page/verso.js")]
    script = QWebEngineScript()
    script.setName("verso")
    script.setSourceCode("\n;\n".join(parts))
    script.setInjectionPoint(QWebEngineScript.InjectionPoint.DocumentReady)
    script.setWorldId(WORLD)
    return script


def _qt_resource(name: str) -> str:
    file = QFile(name)
    if not file.open(QIODevice.OpenModeFlag.ReadOnly):
        raise FileNotFoundError(name)
    return bytes(file.readAll().data()).decode()
