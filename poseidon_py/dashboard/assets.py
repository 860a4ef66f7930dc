"""The files of the page: our own in `static/`, and plotly.js out of the installed package plotly.

The package is found without importing it: the server needs one file of it, and no more.
"""

import asyncio
import gzip
import hashlib
import importlib.util
from collections.abc import Iterable
from pathlib import Path

from aiohttp import web

PREFIX = "/dashboard/"
PLOTLY = "plotly.min.js"
_STATIC = Path(__file__).parent / "static"
_TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
_LEVEL = 6
"""Of gzip: nearly the smallest, for a second of plotly.js instead of two."""

HEADERS = {
    "Content-Security-Policy": "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""Of every answer. Nothing is loaded from elsewhere, and no markup can run; plotly.js writes styles."""


class MissingPlotly(Exception):
    """The package plotly is not installed; the message has the command."""


def plotly_file() -> Path:
    """The file plotly.min.js. Raises MissingPlotly."""
    spec = importlib.util.find_spec("plotly")
    folders: Iterable[str] = (spec.submodule_search_locations or ()) if spec is not None else ()
    for folder in folders:
        found = Path(folder) / "package_data" / PLOTLY
        if found.is_file():
            return found
    lacks = "has no plotly.min.js" if folders else "is not installed"
    raise MissingPlotly(
        f"--dashboard draws with plotly.js of the package plotly, which {lacks}; "
        "run: pip install 'poseidon-firmament[dashboard]' (in a checkout: pip install '.[dashboard]')"
    )


class Assets:
    """`routes`; `paths` are those that say nothing of a cluster."""

    def __init__(self, plotly: Path | None = None) -> None:
        """`plotly`: the file plotly.min.js; None: that of the installed package. Raises MissingPlotly."""
        files = {path.name: path for path in sorted(_STATIC.iterdir()) if path.suffix in _TYPES}
        files[PLOTLY] = plotly if plotly is not None else plotly_file()
        self._files = {f"{PREFIX}{'' if name == 'index.html' else name}": _File(path) for name, path in files.items()}
        self.paths = frozenset({PREFIX.rstrip("/"), *self._files})

    def routes(self) -> list[web.RouteDef]:
        return [web.get(PREFIX.rstrip("/"), _to_index), *(web.get(path, self._answer) for path in self._files)]

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        return await self._files[request.path].answer(request)


async def _to_index(_: web.Request) -> web.Response:
    return web.Response(status=308, headers={**HEADERS, "Location": PREFIX})


class _File:
    """One file; compressed when it is first asked for."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._packed: asyncio.Future[tuple[str, bytes]] | None = None
        self._type = _TYPES[path.suffix]

    async def answer(self, request: web.Request) -> web.StreamResponse:
        tag, packed = await self._ready()
        headers = {**HEADERS, "ETag": tag, "Cache-Control": "no-cache", "Vary": "Accept-Encoding"}
        if tag in request.headers.get("If-None-Match", ""):
            return web.Response(status=304, headers=headers)
        headers["Content-Type"] = f"{self._type}; charset=utf-8"
        if "gzip" not in request.headers.get("Accept-Encoding", ""):
            return web.Response(body=await asyncio.to_thread(gzip.decompress, packed), headers=headers)
        return web.Response(body=packed, headers={**headers, "Content-Encoding": "gzip"})

    async def _ready(self) -> tuple[str, bytes]:
        """Its tag, and its compressed bytes."""
        if self._packed is None:
            self._packed = asyncio.ensure_future(asyncio.to_thread(_packed, self._path))
        return await asyncio.shield(self._packed)


def _packed(path: Path) -> tuple[str, bytes]:
    data = path.read_bytes()
    return f'"{hashlib.sha256(data).hexdigest()[:16]}"', gzip.compress(data, _LEVEL, mtime=0)
