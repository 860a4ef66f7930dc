"""TLS on both sides: the API server with a separate server name, the flow service with mutual TLS."""

import asyncio
import base64
import json
import shutil
import subprocess
import sys

import pytest
from aiohttp import web

from firmament_py.engine.engine import Engine
from firmament_py.flow.solver import OrToolsSolver
from firmament_py.service.server import Server
from firmament_py.service.server import Tls as ServerTls
from policies.load_spreading import LoadSpreading
from poseidon_py.app.bridge import Bridge
from poseidon_py.app.startup import StartError
from poseidon_py.config import loading
from poseidon_py.config.conversion import OptionError
from poseidon_py.config.settings import Settings
from poseidon_py.feed.client import EngineError, GrpcEngine, Tls, why_unreachable
from poseidon_py.kube import credentials
from poseidon_py.kube.client import Kube, UnreachableError

pytestmark = [pytest.mark.slow, pytest.mark.skipif(shutil.which("openssl") is None, reason="makes certificates")]


def self_signed(folder):
    """A certificate for localhost and api.example, and its key."""
    certificate, key = folder / "cert.pem", folder / "key.pem"
    names = "subjectAltName=DNS:localhost,DNS:api.example"
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    files = ["-keyout", str(key), "-out", str(certificate)]
    command = ["openssl", "req", "-x509", *curve, *files, "-days", "2", "-subj", "/CN=localhost", "-addext", names]
    subprocess.run(command, check=True, capture_output=True)
    return certificate, key


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    return self_signed(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def stranger(tmp_path_factory):
    """Another pair, which is not trusted."""
    return self_signed(tmp_path_factory.mktemp("stranger"))


async def test_the_api_server_is_known_by_the_name_in_the_kubeconfig(pair, tmp_path):
    import ssl

    certificate, key = pair
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(certificate, key)

    async def version(request):
        return web.json_response({"gitVersion": "v1"})

    runner = web.ServerRunner(web.Server(version))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
    authority = base64.b64encode(certificate.read_bytes()).decode()
    for name, known in (("api.example", True), ("other.example", False)):
        config = tmp_path / name
        config.write_text(
            "{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}], "
            "users: [{name: u, user: {token: t}}], clusters: [{name: c, cluster: {server: "
            f'"https://127.0.0.1:{runner.addresses[0][1]}", certificate-authority-data: "{authority}", '
            f"tls-server-name: {name}}}}}]}}"
        )
        kube = Kube(await credentials.load(config, None))
        await kube.start()
        if known:
            assert await kube.server_version() == "v1"
            assert b"v1" in await kube.page("/api/v1/pods", {})
        else:
            with pytest.raises(UnreachableError, match=r"certificate|Hostname"):
                await kube.server_version()
        await kube.close()
    await runner.cleanup()


@pytest.mark.parametrize("shows", [True, False])
async def test_the_flow_service_requests_our_certificate(pair, shows):
    certificate, key = pair
    engine = Engine(LoadSpreading(), OrToolsSolver())
    server = Server(engine, "127.0.0.1:0", ServerTls(certificate, key, client_ca=certificate))
    server.start()
    tls = Tls(certificate, certificate, key) if shows else Tls(certificate)
    client = GrpcEngine(f"localhost:{server.port}", 5, tls)
    if shows:
        assert (await client.hello()).epoch == engine.epoch
    else:
        with pytest.raises(EngineError):
            await client.hello()
    await client.close()
    server.stop(0)


async def refused(host: str, port: int, tls: Tls | None) -> list[str]:
    """gRPC's details of a few attempts."""
    client = GrpcEngine(f"{host}:{port}", 5, tls)
    message = []
    for _ in range(3):
        with pytest.raises(EngineError) as caught:
            await client.hello()
        message.append(caught.value.details)
    await client.close()
    return message


async def test_failures_of_tls_are_explained_in_terms_of_the_options(pair, stranger):
    certificate, key = pair
    engine = Engine(LoadSpreading(), OrToolsSolver())
    encrypted = Server(engine, "127.0.0.1:0", ServerTls(certificate, key, client_ca=certificate))
    plain = Server(engine, "127.0.0.1:0")
    mine = Tls(certificate, certificate, key)
    for server in (encrypted, plain):
        server.start()
    for host, server, tls, why in (
        ("localhost", encrypted, Tls(stranger[0]), "its certificate is not signed by the authority in firmament-ca"),
        ("localhost", plain, mine, "it does not use TLS: omit firmament-ca"),
        ("127.0.0.1", encrypted, mine, "its certificate is for another name"),
        ("localhost", encrypted, None, "it closes the connection: it may require TLS"),
        ("localhost", encrypted, Tls(certificate), "or a client certificate (firmament-cert)"),
        ("localhost", encrypted, Tls(certificate, *stranger), "or a client certificate (firmament-cert)"),
    ):
        assert why in why_unreachable(await refused(host, server.port, tls))
    for server in (encrypted, plain):
        server.stop(0)


async def test_a_start_that_fails_for_lack_of_tls_names_the_cause(pair):
    server = Server(Engine(LoadSpreading(), OrToolsSolver()), "127.0.0.1:0", ServerTls(*pair))
    server.start()
    bridge = Bridge(Settings(firmament_address=f"localhost:{server.port}", startup_timeout=1.0))
    with pytest.raises(StartError, match="it closes the connection: it may require TLS"):
        await bridge._start_engine()
    await bridge.stop()
    server.stop(0)


async def test_grpc_writes_no_lines_between_lines_of_json(pair, tmp_path):
    plain = Server(Engine(LoadSpreading(), OrToolsSolver()), "127.0.0.1:0")
    plain.start()
    (tmp_path / "kubeconfig").write_text(
        "{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}], "
        'users: [{name: u, user: {}}], clusters: [{name: c, cluster: {server: "http://127.0.0.1:9"}}]}'
    )
    (tmp_path / "config").write_text(
        f"kubeconfig: {tmp_path}/kubeconfig\nhealth-port: -1\nlog-format: json\nstartup-timeout: 0.5\n"
        f"firmament-address: 127.0.0.1:{plain.port}\nfirmament-ca: {pair[0]}\n"
    )
    command = [sys.executable, "-m", "poseidon_py", "run", "--config", str(tmp_path / "config")]
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, timeout=60, check=False)
    plain.stop(0)
    *message, last = done.stderr.splitlines()
    assert "it does not use TLS" in last
    assert message
    for line in message:
        json.loads(line)


def test_the_message_about_an_unreachable_service_leaves_out_its_addresses():
    message = (
        "failed to connect to all addresses; last error: UNKNOWN: ipv4:1.2.3.4:1: Failed to connect: Connection refused"
    )
    assert why_unreachable([message]) == "Connection refused"
    assert why_unreachable([]) == ""


def given(authority, certificate=None, key=None):
    """The output of `poseidon run` with these files."""
    files = {"firmament_ca": authority, "firmament_cert": certificate, "firmament_key": key}
    return loading.settings({"firmament_address": "h:1"}, files)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        pytest.param(("junk",), "firmament-ca {junk} cannot be used", id="authority"),
        pytest.param(("key",), "firmament-ca {key} cannot be used", id="key-for-authority"),
        pytest.param(("cert", "junk", "key"), "firmament-cert {junk} cannot be used", id="certificate"),
        pytest.param(("cert", "cert", "junk"), "firmament-key {junk} cannot be used", id="key"),
        pytest.param(("cert", "cert", "none"), "there is no file {none}; correct firmament-key", id="no-key"),
        pytest.param(("cert", "cert", "locked"), "give a PEM key without a password", id="locked-key"),
        pytest.param(
            ("cert", "cert", "other"), "firmament-key {other} is not the key of firmament-cert", id="other-key"
        ),
    ],
)
def test_files_that_cannot_be_used_are_named_before_anything_is_started(pair, tmp_path, names, expected):
    certificate, key = pair
    files = {"cert": certificate, "key": key} | {name: tmp_path / name for name in ("junk", "other", "locked", "none")}
    files["junk"].write_text("not a certificate\n")
    curve = ["openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
    subprocess.run([*curve, "-out", str(files["other"])], check=True, capture_output=True)
    lock = ["-aes256", "-passout", "pass:x", "-out", str(files["locked"])]
    subprocess.run(["openssl", "pkey", "-in", str(key), *lock], check=True, capture_output=True)
    with pytest.raises(OptionError) as caught:
        given(*(files[name] for name in names))
    assert expected.format(**files) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "_ssl.c" not in str(caught.value)


def test_valid_tls_files_are_accepted(pair):
    certificate, key = pair
    assert given(certificate, certificate, key).firmament_key == key
