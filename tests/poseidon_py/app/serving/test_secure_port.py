"""What is answered to whom: loopback, other machines, tokens that the API server knows and permits."""

import asyncio
import contextlib
import json
import ssl
import sys
from typing import Any

import aiohttp
import pytest
from aiohttp.test_utils import make_mocked_request

from poseidon_py.app.serving import certificate
from poseidon_py.app.serving.access_review import PERMISSIONS, TOKENS, AccessReviewer, Refused
from poseidon_py.app.serving.certificate import ServingCertificate
from poseidon_py.app.serving.http_endpoints import HealthAddressError, Probes
from poseidon_py.app.serving.origin import from_own_machine
from poseidon_py.kube import credentials
from poseidon_py.kube.client import BusyError
from poseidon_py.util import logs
from tests.poseidon_py.app.serving.answers import Answers

ACCESS = credentials.at("http://127.0.0.1:9")


class Reviews:
    """An API server that knows the tokens `reader` and `admin`; the reader may get /metrics alone."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.broken = False

    async def start(self) -> None:
        pass

    async def close(self) -> None:
        pass

    async def create(self, path: str, body: Any, timeout: float = 30.0) -> bytes:
        self.asked.append(path)
        await asyncio.sleep(0)
        if self.broken:
            raise BusyError(503, "", "down")
        spec = body["spec"]
        if path == TOKENS:
            known = spec["token"] in ("reader", "admin")
            user = {"username": spec["token"], "uid": "u", "groups": ["g"], "extra": {"k": ["v"]}}
            return json.dumps({"status": {"authenticated": known, **({"user": user} if known else {})}}).encode()
        assert path == PERMISSIONS
        assert (spec["groups"], spec["uid"], spec["extra"]) == (("g",), "u", {"k": ("v",)})
        asked = spec["nonResourceAttributes"]
        allowed = spec["user"] == "admin" or asked == {"path": "/metrics", "verb": "get"}
        return json.dumps({"status": {"allowed": allowed}}).encode()


class Served(Answers):
    """Both ports; `problem` is what readiness lacks."""

    session: aiohttp.ClientSession

    def __init__(self) -> None:
        super().__init__(secure_port=0)
        self.problem = ""
        self.reviews = Reviews()
        self.probes = Probes(self, lambda _: self.reviews)

    def checks(self) -> dict[str, str]:
        return {"pods": "", "queues": self.problem}

    async def ask(self, path: str, token: str = "", *, method: str = "GET", **given: Any) -> tuple[int, str]:
        """Of the secure port."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        url = f"https://127.0.0.1:{self.probes.secure_port}{path}"
        async with self.session.request(method, url, headers=headers, ssl=False, **given) as answer:
            return answer.status, await answer.text()

    async def ask_health(self, path: str, *, method: str = "GET", **given: Any) -> tuple[int, str]:
        url = f"http://127.0.0.1:{self.probes.port}{path}"
        async with self.session.request(method, url, **given) as answer:
            return answer.status, await answer.text()


@pytest.fixture
async def served():
    served = Served()
    await served.probes.start()
    await served.probes.start_secure(ACCESS)
    async with aiohttp.ClientSession() as served.session:
        yield served
    await served.probes.stop()


@pytest.mark.parametrize(
    ("token", "path", "status", "says"),
    [
        ("", "/metrics", 401, "send the token of a user or a service account"),
        ("forged", "/metrics", 401, "the API server does not know the token"),
        ("x" * 20_000, "/metrics", 401, "send the token"),
        ("reader", "/metrics", 200, "poseidon_build_info"),
        ("reader", "/configz", 403, "reader may not get the path /configz; a rule with nonResourceURLs permits it"),
        ("admin", "/configz", 200, "PoseidonConfiguration"),
        ("\u00e9", "/metrics", 401, "send the token"),
        ("", "/nothing", 401, "send the token"),
        ("admin", "/nothing", 404, ""),
        ("", "/livez", 200, "ok\n"),
        ("forged", "/readyz", 200, "ok\n"),
    ],
)
async def test_the_secure_port_answers_those_whom_the_api_server_permits(served, token, path, status, says):
    found, text = await served.ask(path, token) if len(token) < 8_000 else (401, "send the token")
    assert found == status
    assert says in text


async def test_probes_say_no_more_than_whether_all_is_well_unless_the_asker_is_permitted(served):
    served.problem = "queues are not listed yet"
    assert await served.ask("/readyz?verbose") == (503, "not ok\n")
    assert await served.ask("/readyz", "admin") == (503, "not ok: queues are not listed yet\n")
    verbose = "[+]pods ok\n[-]queues: queues are not listed yet\nreadyz check failed\n"
    assert await served.ask("/readyz?verbose", "admin") == (503, verbose)
    assert await served.ask_health("/readyz?verbose") == (503, verbose)
    served.problem = ""
    assert await served.ask_health("/readyz?verbose") == (200, "[+]pods ok\n[+]queues ok\nreadyz check passed\n")
    assert await served.ask_health("/livez?verbose") == (200, "[+]ping ok\nlivez check passed\n")


@pytest.mark.parametrize(
    "headers",
    [
        *({name: "x"} for name in ("Origin", "X-Forwarded-For", "Forwarded", "Via", "X-Real-IP", "X-Forwarded-Host")),
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "null"},
        {"Origin": "http://evil.example:10271", "Host": "evil.example:10271"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Host": "evil.example:10271"},  # whose DNS leads here
    ],
)
async def test_web_pages_and_proxies_get_the_probes_of_the_health_port_alone(served, headers):
    status, text = await served.ask_health("/metrics", headers=headers)
    assert status == 403
    assert "other machines get nothing but the probes" in text
    served.problem = "no"
    assert await served.ask_health("/readyz", headers=headers) == (503, "not ok\n")


async def test_our_own_page_is_of_this_machine(served):
    """Browsers send Origin with requests for modules."""
    headers = {"Host": "127.0.0.1:10271", "Origin": "http://127.0.0.1:10271", "Sec-Fetch-Site": "same-origin"}
    assert (await served.ask_health("/metrics", headers=headers))[0] == 200


@pytest.mark.parametrize("host", ["localhost:10271", "127.0.0.1", "[::1]:10271", "10.0.0.7:80"])
async def test_this_machine_by_its_addresses(served, host):
    assert (await served.ask_health("/metrics", headers={"Host": host}))[0] == 200


@pytest.mark.parametrize(
    ("peer", "own"),
    [
        (("127.0.0.1", 5), True),
        (("::1", 5, 0, 0), True),
        (("10.0.0.7", 5), False),
        (("fe80::1%eth0", 5), False),
        (None, False),
    ],
)
def test_own_machines(peer, own):
    class Transport(asyncio.Transport):
        def get_extra_info(self, name: str, default: Any = None) -> Any:
            return peer if name == "peername" else default

    assert from_own_machine(make_mocked_request("GET", "/metrics", {"Host": "localhost"}, transport=Transport())) is own


async def test_nothing_is_permitted_while_the_api_server_cannot_be_asked(served):
    served.reviews.broken = True
    status, text = await served.ask("/metrics", "admin")
    assert status == 503
    assert "cannot be asked who may do this; see the scheduler's log" in text
    assert (await served.ask("/livez", "admin"))[0] == 200


async def test_answers_are_remembered_for_ten_seconds():
    now, reviews = [100.0], Reviews()
    reviewer = AccessReviewer(reviews, monotonic=lambda: now[0])

    async def ask(token: str, verb: str = "get") -> int:
        before = len(reviews.asked)
        with contextlib.suppress(Refused):
            await reviewer.permit(f"bearer {token}", verb, "/metrics")
        return len(reviews.asked) - before

    assert [await ask("reader"), await ask("reader"), await ask("forged"), await ask("forged")] == [2, 0, 1, 0]
    assert [await ask("reader", "put"), await ask("reader", "put"), await ask("admin")] == [1, 0, 2]
    now[0] += 10.0
    assert [await ask("reader"), await ask("forged")] == [2, 1]


async def test_groups_count_for_what_a_user_may_do():
    """One name, two tokens of different groups; and parts of names that join to the same text."""

    class Groups(Reviews):
        async def create(self, path: str, body: Any, timeout: float = 30.0) -> bytes:
            spec = body["spec"]
            if path == TOKENS:
                name, uid, group = spec["token"].split("/")
                user = {"username": name, "uid": uid, "groups": [group]}
                return json.dumps({"status": {"authenticated": True, "user": user}}).encode()
            return json.dumps({"status": {"allowed": spec["groups"] == ("admins",)}}).encode()

    reviewer = AccessReviewer(Groups())
    for token, permitted in (
        ("a/1/admins", True),
        ("a/1/guests", False),
        ("a/1/admins", True),
        ("b a/x/guests", False),
    ):
        if permitted:
            assert (await reviewer.permit(f"Bearer {token}", "get", "/metrics")).username == "a"
        else:
            with pytest.raises(Refused, match="may not get"):
                await reviewer.permit(f"Bearer {token}", "get", "/metrics")


async def test_a_server_that_does_not_answer_holds_few_requests(monkeypatch):
    """Neither memory nor connections are for made-up tokens."""
    monkeypatch.setattr("poseidon_py.app.serving.access_review._REVIEW_SECONDS", 0.05)

    class Hanging(Reviews):
        at_once = most_at_once = 0

        async def create(self, path: str, body: Any, timeout: float = 30.0) -> bytes:
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
            try:
                await asyncio.Event().wait()
            finally:
                self.at_once -= 1
            raise AssertionError

    reviews = Hanging()
    reviewer = AccessReviewer(reviews)
    found = await asyncio.gather(
        *(reviewer.permit(f"Bearer t{n}", "get", "/metrics") for n in range(100)), return_exceptions=True
    )
    assert {error.code for error in found if isinstance(error, Refused)} == {503}
    assert sum("too many requests wait" in str(error) for error in found) == 100 - 32
    assert reviews.most_at_once == 32
    assert reviews.at_once == 0


async def test_reviews_of_made_up_tokens_are_few_at_a_time_and_forgotten():
    reviews = Reviews()
    reviewer = AccessReviewer(reviews)
    for n in range(3000):
        with pytest.raises(Refused):
            await reviewer.permit(f"Bearer t{n}", "get", "/metrics")
    assert len(reviewer._users) <= 1024


async def test_the_level_of_the_log_can_be_changed_and_read(served):
    before = logs.level()
    try:
        assert (await served.ask("/debug/flags/v", "reader", method="PUT", data="4"))[0] == 403
        for text, level in (("4", "debug"), ("2", "info"), ("error", "error")):
            assert await served.ask("/debug/flags/v", "admin", method="PUT", data=text) == (
                200,
                f"successfully set log level to {level}\n",
            )
            assert await served.ask_health("/debug/flags/v") == (200, f"{level}\n")
        status, answer = await served.ask_health("/debug/flags/v", method="PUT", data="loud")
        assert (status, json.loads(answer)["error"]) == (
            400,
            "'loud' is no level; give one of debug, info, warning, error, or a number",
        )
    finally:
        logs.set_level(before)


# -- certificates ---------------------------------------------------------------------------------------------


def written(folder, name="a"):
    made = certificate._self_signed(certificate._now()).decode()
    key, _, cert = made.partition("-----BEGIN CERTIFICATE-----")
    (folder / f"{name}.key").write_text(key)
    (folder / f"{name}.crt").write_text(f"-----BEGIN CERTIFICATE-----{cert}")
    return folder / f"{name}.crt", folder / f"{name}.key"


def shown(context: ssl.SSLContext) -> bytes:
    """The certificate that a client sees, DER."""
    client, server, of_client, of_server = ssl.create_default_context(), *(ssl.MemoryBIO() for _ in range(3))
    client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    asking, answering = client.wrap_bio(server, of_client), context.wrap_bio(of_client, of_server, server_side=True)
    for _ in range(4):
        for side in (asking, answering):
            with contextlib.suppress(ssl.SSLWantReadError):
                side.do_handshake()
        server.write(of_server.read())
    found = asking.getpeercert(binary_form=True)
    assert found is not None
    return found


def test_a_renewed_certificate_is_served_and_a_broken_one_is_not(tmp_path, caplog):
    cert, key = written(tmp_path)
    serving = ServingCertificate(cert, key)
    first = shown(serving.context)
    serving.refresh()
    assert shown(serving.context) == first
    for source, target in zip(written(tmp_path, "b"), (cert, key), strict=True):
        target.write_bytes(source.read_bytes())
    serving.refresh()
    second = shown(serving.context)
    assert second != first
    others = written(tmp_path, "c")
    cert.write_bytes(others[0].read_bytes())  # its key comes later
    serving.refresh()
    assert shown(serving.context) == second
    key.write_text("nonsense")
    serving.refresh()
    assert shown(serving.context) == second
    key.write_bytes(others[1].read_bytes())
    serving.refresh()
    assert shown(serving.context) not in (first, second)
    assert "cannot be loaded, and the former one serves" in caplog.text


def test_a_certificate_that_cannot_be_made_is_an_error_with_the_remedy(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(OSError, match=r"no self-signed certificate can be made: .*; give --tls-cert-file"):
        certificate.ServingCertificate(None, None)


def test_a_self_signed_certificate_is_made_anew_before_it_ends():
    serving = ServingCertificate(None, None)
    first = shown(serving.context)
    serving.refresh()
    assert shown(serving.context) == first
    serving._made_at -= certificate._RENEWED_AFTER
    serving.refresh()
    assert shown(serving.context) != first


async def test_a_certificate_that_cannot_be_used_is_an_error_of_the_start(tmp_path):
    files = {"tls_cert_file": tmp_path / "x", "tls_private_key_file": tmp_path / "y"}
    probes = Probes(Answers(health_port=-1, secure_port=0, **files))
    with pytest.raises(HealthAddressError, match="cannot use the certificate of --tls-cert-file"):
        await probes.start_secure(ACCESS)
    await probes.stop()
