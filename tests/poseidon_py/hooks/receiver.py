"""An HTTP receiver on loopback with faults, which verifies signatures as a user's does."""

import asyncio
import json
import time

from aiohttp import web

from poseidon_py.hooks.sending.signature import verify

KEY = b"0123456789abcdef0123456789abcdef"


class Receiver:
    """`faults`: for the next requests, in order; afterwards all are acknowledged."""

    def __init__(self, *keys, tls=None):
        self.keys, self.tls = keys, tls
        self.faults: list = []
        self.bodies: list[dict] = []
        self.headers: list = []
        self.release = asyncio.Event()
        self.active = 0
        self.most_active = 0

    async def handle(self, request):
        body = await request.read()
        self.headers.append(request.headers)
        if self.keys:
            verify(request.headers.get("Poseidon-Signature", ""), body, self.keys, time.time())
        self.bodies.append(json.loads(body))
        self.active += 1
        self.most_active = max(self.most_active, self.active)
        try:
            fault = self.faults.pop(0) if self.faults else 200
            if fault == "reset":  # what it has processed is not acknowledged
                request.transport.abort()
                return web.Response()
            if fault == "hang":
                await self.release.wait()
                return web.Response()
            if isinstance(fault, web.StreamResponse):
                return fault
            return web.Response(status=fault)
        finally:
            self.active -= 1

    def ids(self):
        return [body["deliveryID"] for body in self.bodies]

    async def until(self, number):
        """Until so many requests have come."""
        async with asyncio.timeout(60):
            while len(self.bodies) < number:  # noqa: ASYNC110
                await asyncio.sleep(0.005)

    async def __aenter__(self):
        self.runner = web.ServerRunner(web.Server(self.handle))
        await self.runner.setup()
        site = web.TCPSite(self.runner, "127.0.0.1", 0, ssl_context=self.tls)
        await site.start()
        scheme, host = ("https", "localhost") if self.tls else ("http", "127.0.0.1")
        self.url = f"{scheme}://{host}:{self.runner.addresses[0][1]}/events"
        return self

    async def __aexit__(self, *_):
        self.release.set()
        await self.runner.cleanup()
