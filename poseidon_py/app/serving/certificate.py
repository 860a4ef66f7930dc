"""The certificate of the secure port: of files that may be renewed at any time, or self-signed."""

import asyncio
import contextlib
import datetime
import logging
import os
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

from poseidon_py.app.serving.self_signed import VALID

log = logging.getLogger(__name__)

_CHECK_SECONDS = 30.0
_RENEWED_AFTER = VALID - datetime.timedelta(days=65)
_MADE_WITHIN_SECONDS = 60.0


class ServingCertificate:
    """`context` serves with the newest certificate that could be read; `run` follows the files."""

    def __init__(
        self, cert: Path | None, key: Path | None, *, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        """`cert` and `key`: PEM files; None: a self-signed certificate, which is made anew in time. Raises OSError."""
        self.context = _new_context()
        self.context.sni_callback = self._serve_newest
        self._files = (cert, key) if cert is not None and key is not None else None
        self._sleep = sleep
        self._seen = self._changed_at()
        self._made_at = _now()
        self._newest = self._make() if self._files is None else _loaded(*self._files)

    async def run(self) -> None:
        """Loads the files again when they change; what cannot be loaded leaves the former certificate. Never
        returns."""
        while True:
            await self._sleep(_CHECK_SECONDS)
            self.refresh()

    def refresh(self) -> None:
        """Loads the files if they have changed."""
        if self._files is None:
            if _now() - self._made_at > _RENEWED_AFTER:
                self._newest = self._make()
            return
        seen = self._changed_at()
        if seen == self._seen:
            return
        try:
            self._newest = _loaded(*self._files)
        except OSError as error:  # of which SSLError is one
            log.warning("the certificate %s cannot be loaded, and the former one serves: %s", self._files[0], error)
            return
        self._seen = seen
        log.info("the certificate %s was renewed", self._files[0])

    def _serve_newest(self, connection: ssl.SSLObject | ssl.SSLSocket, name: str | None, _: ssl.SSLContext) -> None:
        connection.context = self._newest

    def _make(self) -> ssl.SSLContext:
        self._made_at = _now()
        with _readable(_self_signed(self._made_at)) as path:
            return _loaded(path)

    def _changed_at(self) -> tuple[int, ...]:
        """Of both files; 0: it cannot be read."""
        found = []
        for file in self._files or ():
            with contextlib.suppress(OSError):
                found.append(file.stat().st_mtime_ns)
        return tuple(found)


def _new_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def _loaded(cert: Path | str, key: Path | None = None) -> ssl.SSLContext:
    """A context of its own: one that is loaded again mixes the old with the new. Raises OSError."""
    context = _new_context()
    context.load_cert_chain(cert, key)
    return context


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


def _self_signed(now: datetime.datetime) -> bytes:
    """A key and its certificate, PEM. Made in a process of its own: the package that makes them would take 12 MB of
    this one from then on. Raises OSError."""
    words = (sys.executable, "-P", "-m", "poseidon_py.app.serving.self_signed", now.isoformat())
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    try:
        made = subprocess.run(words, capture_output=True, env=environment, timeout=_MADE_WITHIN_SECONDS, check=True)
    except subprocess.SubprocessError as error:
        why = getattr(error, "stderr", None) or str(error).encode()
        last = why.decode(errors="replace").strip().rpartition("\n")[2]
        raise OSError(f"no self-signed certificate can be made: {last}; give --tls-cert-file") from error
    return made.stdout


@contextlib.contextmanager
def _readable(content: bytes) -> Iterator[str]:
    """A path under which ssl can read the content: in memory, if possible, since roots can be read-only."""
    if hasattr(os, "memfd_create"):
        with os.fdopen(os.memfd_create("certificate"), "wb") as file:
            file.write(content)
            file.flush()
            yield f"/proc/self/fd/{file.fileno()}"
        return
    with tempfile.NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        yield file.name
