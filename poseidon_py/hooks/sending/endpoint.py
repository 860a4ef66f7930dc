"""Sends deliveries to one endpoint. The only module of the package that speaks HTTP to endpoints."""

import asyncio
from collections.abc import Mapping

import aiohttp

from poseidon_py.hooks.clock import Clock
from poseidon_py.hooks.config.hook_config import Hook
from poseidon_py.hooks.config.sources import SourceError, keys_of
from poseidon_py.hooks.records import Record
from poseidon_py.hooks.sending.outcome import Outcome, outcome_of
from poseidon_py.hooks.sending.payload import payload
from poseidon_py.hooks.sending.signature import HEADER, sign
from poseidon_py.kube.credentials import trusting

_MAX_ANSWER = 1024
"""Bytes of an answer that are read, for messages."""


class Endpoint:
    """The endpoint of one hook. Each has its own connections, so that none waits for another."""

    def __init__(self, hook: Hook, clock: Clock) -> None:
        self._hook = hook
        self._clock = clock
        self._session: aiohttp.ClientSession | None = None

    async def send(self, record: Record) -> Outcome:
        """One attempt. Raises no errors of the network."""
        hook = self._hook
        body = payload(record)
        now = self._clock.now()
        try:
            headers = self._headers(record, body, now)
        except SourceError as error:
            return Outcome(f"cannot be signed or sent: {error}")
        try:
            async with (
                asyncio.timeout(hook.timeout),
                self._opened().post(hook.url, data=body, headers=headers, allow_redirects=False) as answer,
            ):
                text = await answer.content.read(_MAX_ANSWER) if answer.status >= 300 else b""
                retry_after = answer.headers.get("Retry-After")
                return outcome_of(answer.status, text.decode(errors="replace"), retry_after, now)
        except TimeoutError:
            return Outcome(f"no answer in {hook.timeout:g} s")
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return Outcome(str(error) or type(error).__name__)

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _headers(self, record: Record, body: bytes, now: float) -> Mapping[str, str]:
        """Raises SourceError."""
        headers = {name: source.current()[0] for name, source in self._hook.headers}
        headers |= {"Content-Type": "application/json", "Poseidon-Delivery": record.id}
        if self._hook.secret is not None:
            headers[HEADER] = sign(keys_of(self._hook.secret), int(now), body)
        return headers

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            tls = trusting(self._hook.ca) if self._hook.url.startswith("https:") else True
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=self._hook.concurrency, ssl=tls),
                cookie_jar=aiohttp.DummyCookieJar(),
                headers={"User-Agent": "poseidon-hooks"},
                timeout=aiohttp.ClientTimeout(total=None),  # `send` limits the time
                auto_decompress=False,
            )
        return self._session
