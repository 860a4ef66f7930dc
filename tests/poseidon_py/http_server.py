"""An HTTP server for tests of clients."""

from typing import Any

from aiohttp import web


class Server:
    """An API server that records requests and answers by path."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str, dict[str, str], bytes]] = []
        self.answers: dict[str, Any] = {}

    async def handle(self, request):
        body = await request.read()
        self.requests.append((request.method, request.raw_path, dict(request.headers), body))
        answer = self.answers.get(request.path, web.Response(status=201, text="{}"))
        if callable(answer):
            answer = await answer(request)
        return answer

    async def __aenter__(self):
        self.runner = web.ServerRunner(web.Server(self.handle))
        await self.runner.setup()
        site = web.TCPSite(self.runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self.runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_):
        await self.runner.cleanup()
