"""What the two hubs say about a model's files, and where each file lies.

Sources of the forms used here (no code is taken from them):

- Hugging Face: huggingface_hub, ``hf_api.py`` (``list_repo_tree``: ``/api/models/ID/tree/REVISION``
  with pages by ``Link`` header; ``RepoFile``: ``path``, ``size``, ``oid`` = SHA-1 of the git blob,
  ``lfs.oid`` = SHA-256 of a large file), ``constants.py`` (``/ID/resolve/REVISION/FILE``),
  ``utils/_http.py`` (``X-Error-Code``; 401 also for what does not exist).
- ModelScope: modelscope_hub, ``_legacy_api.py`` (``list_repo_files``:
  ``/api/v1/models/ID/repo/files?Revision=&Recursive=``, an envelope ``Code``, ``Message``,
  ``Data.Files`` with ``Path``, ``Type``, ``Size``, ``Sha256``), ``_openapi.py`` (bearer token and
  cookie ``m_session_id``); modelscope, ``hub/file_download.py``
  (``/api/v1/models/ID/repo?Revision=&FilePath=``).
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Optional, TypeVar
from urllib.parse import quote

import httpx
import msgspec

from desktop import keyrings
from desktop.engines.model.weights import is_inside
from desktop.i18n import _
from desktop.models.errors import BadAnswer, BadToken, UnsafeName
from desktop.models.source import Source

_T = TypeVar("_T")

Ask = Callable[[str], Awaitable[httpx.Response]]
"""GET of an address, with credentials and patience; what it returns was successful."""


@dataclass(frozen=True)
class HubFile:
    """One file of a model as the hub describes it. Without any checksum only its size counts."""

    name: str
    size: int
    sha256: str = ""
    git_sha1: str = ""
    """SHA-1 of the git blob: of ``blob SIZE``, a zero byte and the content."""

    @property
    def checksum(self) -> str:
        """The best there is, with its kind; empty when there is none."""
        if self.sha256:
            return f"sha256:{self.sha256}"
        return f"git:{self.git_sha1}" if self.git_sha1 else ""


@dataclass(frozen=True)
class Listing:
    """A model's needed files at one revision (a commit where the hub names it)."""

    revision: str
    files: tuple[HubFile, ...]

    @property
    def bytes(self) -> int:
        """All together."""
        return sum(file.size for file in self.files)


async def listing(source: Source, ask: Ask) -> Listing:
    """Ask the hub for the files; raises BadAnswer, UnsafeName and what ASK raises."""
    found = await (_huggingface if source.hub == "huggingface" else _modelscope)(source, ask)
    for file in found.files:
        # One such name and nothing the hub says is to be trusted.
        if not is_inside(file.name):
            raise UnsafeName(host=source.host, name=file.name[:200])
        if file.size < 0:
            raise BadAnswer(host=source.host, reason=_("it lists sizes below zero"))
    needed = needed_files(found.files)
    names = {file.name for file in needed}
    if "config.json" not in names or not any(_is_weights(name) for name in names):
        raise BadAnswer(host=source.host, reason=_("it lists no model"))
    return Listing(found.revision, needed)


def file_address(source: Source, revision: str, name: str) -> str:
    """Where the file NAME is fetched."""
    if source.hub == "huggingface":
        return f"{source.address}/{source.model}/resolve/{quote(revision, safe='')}/{quote(name)}"
    return (f"{source.address}/api/v1/models/{source.model}/repo"
            f"?Revision={quote(revision, safe='')}&FilePath={quote(name, safe='')}")


def token_headers(source: Source, token: str) -> dict[str, str]:
    """What tells the hub who asks; raises BadToken."""
    if not keyrings.sendable(token):  # From the environment, or put there by another program.
        raise BadToken(host=source.host)
    headers = {"Authorization": f"Bearer {token}"}
    if source.hub == "modelscope":
        headers["Cookie"] = f"m_session_id={token}"
    return headers


def needed_files(files: tuple[HubFile, ...]) -> tuple[HubFile, ...]:
    """Those an engine loads, small ones first: weights, configuration, tokenizer, processor, the
    model's own code (run only where a person allows it) and its licence."""
    # Verso's own file in that folder is not for a hub to write.
    top = [file for file in files if "/" not in file.name and not file.name.startswith(".")
           and file.name != "verso-model.json"]
    safe = any(file.name.endswith(".safetensors") for file in top)
    wanted = [file for file in top if _is_needed(file.name)
              and not (safe and re.search(r"\.bin(\.index\.json)?$", file.name))]
    return tuple(sorted(wanted, key=lambda file: (file.size, file.name)))


def _is_needed(name: str) -> bool:
    return _is_weights(name) or name.startswith(("LICENSE", "NOTICE")) or name.endswith(
        (".json", ".model", ".txt", ".jinja", ".tiktoken", ".py"))


def _is_weights(name: str) -> bool:
    return name.endswith((".safetensors", ".bin"))


# --- Hugging Face
class _Lfs(msgspec.Struct):
    oid: str
    size: int


class _TreeEntry(msgspec.Struct):
    type: str
    path: str
    oid: str = ""
    size: int = 0
    lfs: Optional[_Lfs] = None


class _Revision(msgspec.Struct):
    sha: str


async def _huggingface(source: Source, ask: Ask) -> Listing:
    api = f"{source.address}/api/models/{source.model}"
    revision = source.wanted_revision
    if not re.fullmatch(r"[0-9a-f]{40}", revision):
        # A branch may move while its files are fetched; its commit does not.
        answer = await ask(f"{api}/revision/{quote(revision, safe='')}")
        revision = _decoded(source, answer, _Revision).sha
        if not re.fullmatch(r"[0-9a-f]{40}", revision):
            raise BadAnswer(host=source.host, reason=_("it names no commit"))
    files: list[HubFile] = []
    page: str | None = f"{api}/tree/{revision}?recursive=true"
    seen: set[str] = set()
    while page and page not in seen:
        seen.add(page)
        answer = await ask(page)
        files += (_huggingface_file(entry)
                  for entry in _decoded(source, answer, list[_TreeEntry]) if entry.type == "file")
        page = _next_page(source, answer)
    return Listing(revision, tuple(files))


def _huggingface_file(entry: _TreeEntry) -> HubFile:
    if entry.lfs:
        return HubFile(entry.path, entry.lfs.size, sha256=_hex(entry.lfs.oid, 64))
    return HubFile(entry.path, entry.size, git_sha1=_hex(entry.oid, 40))


def _next_page(source: Source, answer: httpx.Response) -> str | None:
    """The next page's address; a mirror may pass on one of the hub itself, which is not asked."""
    link = answer.links.get("next", {}).get("url")
    if not link:
        return None
    there, own = answer.url.join(link), httpx.URL(source.address)
    return str(there.copy_with(scheme=own.scheme, host=own.host, port=own.port))


# --- ModelScope
class _ScopeFile(msgspec.Struct, rename="pascal"):
    path: str
    type: str = "blob"
    size: int = 0
    sha256: Optional[str] = None


class _ScopeData(msgspec.Struct, rename="pascal"):
    files: Optional[list[_ScopeFile]] = None


class _Envelope(msgspec.Struct, rename="pascal"):
    code: int = 200
    message: str = ""
    data: Optional[_ScopeData] = None


async def _modelscope(source: Source, ask: Ask) -> Listing:
    revision = source.wanted_revision
    answer = await ask(f"{source.address}/api/v1/models/{source.model}/repo/files"
                       f"?Revision={quote(revision, safe='')}&Recursive=true")
    envelope = _decoded(source, answer, _Envelope)
    if envelope.code != 200 or envelope.data is None or envelope.data.files is None:
        raise BadAnswer(host=source.host, reason=envelope.message[:200] or _("it lists no files"))
    return Listing(revision, tuple(
        HubFile(file.path, file.size, sha256=_hex(file.sha256 or "", 64))
        for file in envelope.data.files if file.type != "tree"))


def _decoded(source: Source, answer: httpx.Response, kind: type[_T]) -> _T:
    try:
        return msgspec.json.decode(answer.content, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadAnswer(host=source.host, reason=_("it is not what its API says"),
                        detail=str(error)) from None


def _hex(text: str, digits: int) -> str:
    """TEXT where it is a checksum of DIGITS, in small letters; empty otherwise."""
    lower = text.lower()
    return lower if re.fullmatch(rf"[0-9a-f]{{{digits}}}", lower) else ""
