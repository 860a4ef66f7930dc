"""TLS on both sides: the API server with a separate server name, the flow service with mutual TLS."""

import asyncio
import base64
import json
import subprocess
import sys

import pytest
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import ec

from firmament_py.engine.engine import Engine
from firmament_py.flow.solver import OrToolsSolver
from firmament_py.service.server import Server
from firmament_py.service.tls_files import Tls as ServerTls
from policies.load_spreading import LoadSpreading
from poseidon_py.app.bridge import Bridge
from poseidon_py.app.startup import StartError
from poseidon_py.config import loading
from poseidon_py.config.conversion import OptionError
from poseidon_py.config.settings import Settings
from poseidon_py.feed.client import EngineClient, EngineError
from poseidon_py.feed.transport.transport import Tls, why_unreachable
from poseidon_py.kube import credentials
from poseidon_py.kube.client import Kube, UnreachableError
from tests.certificates import Authority, private

pytestmark = pytest.mark.slow


def trusted(folder):
    """A certificate for localhost and api.example, its key, and the certificate of who signed it."""
    authority = Authority(folder, "authority")
    pair = authority.issue("localhost", "localhost", "api.example")
    return pair.certificate, pair.key, authority.certificate


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    return trusted(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def stranger(tmp_path_factory):
    """Another pair, which is not trusted."""
    return trusted(tmp_path_factory.mktemp("stranger"))


async def test_the_api_server_is_known_by_the_name_in_the_kubeconfig(pair, tmp_path):
    import ssl

    certificate, key, ca = pair
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(certificate, key)

    async def version(request):
        return web.json_response({"gitVersion": "v1"})

    runner = web.ServerRunner(web.Server(version))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
    authority = base64.b64encode(ca.read_bytes()).decode()
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
    certificate, key, ca = pair
    engine = Engine(LoadSpreading(), OrToolsSolver())
    server = Server(engine, "127.0.0.1:0", ServerTls(certificate, key, client_ca=ca))
    server.start()
    tls = Tls(ca, certificate, key) if shows else Tls(ca)
    client = EngineClient(f"localhost:{server.port}", 5, tls)
    if shows:
        assert (await client.hello()).epoch == engine.epoch
    else:
        with pytest.raises(EngineError):
            await client.hello()
    await client.close()
    server.stop(0)


async def refused(host: str, port: int, tls: Tls | None) -> list[str]:
    """gRPC's details of a few attempts."""
    client = EngineClient(f"{host}:{port}", 5, tls)
    message = []
    for _ in range(3):
        with pytest.raises(EngineError) as caught:
            await client.hello()
        message.append(caught.value.details)
    await client.close()
    return message


async def test_failures_of_tls_are_explained_in_terms_of_the_options(pair, stranger, tmp_path):
    certificate, key, ca = pair
    engine = Engine(LoadSpreading(), OrToolsSolver())
    encrypted = Server(engine, "127.0.0.1:0", ServerTls(certificate, key, client_ca=ca))
    plain = Server(engine, "127.0.0.1:0")
    mine, not_signed = Tls(ca, certificate, key), "is not signed by the authority in firmament-ca-file"
    for server in (encrypted, plain):
        server.start()
    for host, server, tls, why in (
        ("localhost", encrypted, Tls(stranger[2]), not_signed),
        ("localhost", encrypted, Tls(Authority(tmp_path, "other").certificate), not_signed),
        ("localhost", plain, mine, "it does not use TLS: omit firmament-ca-file"),
        ("127.0.0.1", encrypted, mine, "its certificate is for another name"),
        ("localhost", encrypted, None, "it closes the connection: it may require TLS"),
        ("localhost", encrypted, Tls(ca), "or a client certificate (firmament-cert-file)"),
        ("localhost", encrypted, Tls(ca, *stranger[:2]), "or a client certificate (firmament-cert-file)"),
    ):
        assert why in why_unreachable(await refused(host, server.port, tls))
    for server in (encrypted, plain):
        server.stop(0)


async def test_a_start_that_fails_for_lack_of_tls_names_the_cause(pair):
    server = Server(Engine(LoadSpreading(), OrToolsSolver()), "127.0.0.1:0", ServerTls(*pair[:2]))
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
        f"firmament-address: 127.0.0.1:{plain.port}\nfirmament-ca-file: {pair[2]}\n"
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
    files = {"firmament_ca_file": authority, "firmament_cert_file": certificate, "firmament_key_file": key}
    return loading.settings({"firmament_address": "h:1"}, files)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        pytest.param(("junk",), "firmament-ca-file {junk} cannot be used", id="authority"),
        pytest.param(("key",), "firmament-ca-file {key} cannot be used", id="key-for-authority"),
        pytest.param(("cert", "junk", "key"), "firmament-cert-file {junk} cannot be used", id="certificate"),
        pytest.param(("cert", "cert", "junk"), "firmament-key-file {junk} cannot be used", id="key"),
        pytest.param(("cert", "cert", "none"), "there is no file {none}; correct --firmament-key-file", id="no-key"),
        pytest.param(("cert", "cert", "locked"), "give a PEM key without a password", id="locked-key"),
        pytest.param(
            ("cert", "cert", "other"),
            "firmament-key-file {other} is not the key of --firmament-cert-file",
            id="other-key",
        ),
    ],
)
def test_files_that_cannot_be_used_are_named_before_anything_is_started(pair, tmp_path, names, expected):
    certificate, key, _ = pair
    files = {"cert": certificate, "key": key} | {name: tmp_path / name for name in ("junk", "other", "locked", "none")}
    files["junk"].write_text("not a certificate\n")
    files["other"].write_bytes(private(ec.generate_private_key(ec.SECP256R1())))
    files["locked"].write_bytes(private(ec.generate_private_key(ec.SECP256R1()), b"x"))
    with pytest.raises(OptionError) as caught:
        given(*(files[name] for name in names))
    assert expected.format(**files) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "_ssl.c" not in str(caught.value)


def test_valid_tls_files_are_accepted(pair):
    certificate, key, ca = pair
    assert given(ca, certificate, key).firmament_key_file == key


# -- certificates that are renewed ------------------------------------------------------------------------------------


class Rotation:
    """A service and a client with mutual TLS, whose files another authority replaces."""

    def __init__(self, folder):
        self.old, self.new = Authority(folder, "old"), Authority(folder, "new")
        self.ca = folder / "ca.pem"
        self.of_server, self.of_client = (self.old.issue(name, "localhost") for name in ("server", "client"))
        self.trust(self.old)
        self.engine = Engine(LoadSpreading(), OrToolsSolver())
        server, client = self.of_server, self.of_client
        self.server = Server(self.engine, "127.0.0.1:0", ServerTls(server.certificate, server.key, self.ca))
        self.tls = Tls(self.ca, client.certificate, client.key)
        self.client = EngineClient(f"localhost:{self.server.port}", 5, self.tls)
        self.server.start()

    def trust(self, *authorities):
        self.ca.write_bytes(b"".join(each.certificate.read_bytes() for each in authorities))

    async def stop(self):
        await self.client.close()
        self.server.stop(0)


@pytest.fixture
async def rotation(tmp_path):
    rotation = Rotation(tmp_path)
    yield rotation
    await rotation.stop()


async def test_who_has_a_certificate_of_the_former_authority_is_refused_and_the_service_goes_on(rotation, tmp_path):
    assert (await rotation.client.hello()).epoch == rotation.engine.epoch
    before = [tmp_path / name for name in ("then.pem", "then.key")]
    for source, target in zip((rotation.of_client.certificate, rotation.of_client.key), before, strict=True):
        target.write_bytes(source.read_bytes())
    rotation.new.issue("server2", "localhost").copy_to(rotation.of_server)
    rotation.new.issue("client2", "localhost").copy_to(rotation.of_client)
    rotation.trust(rotation.new)
    assert (await rotation.client.hello()).epoch == rotation.engine.epoch, "our own client has the new certificates"
    withdrawn = Tls(rotation.new.certificate, *before)
    assert "client certificate" in why_unreachable(await refused("localhost", rotation.server.port, withdrawn))
    assert (await rotation.client.hello()).epoch == rotation.engine.epoch


async def test_calls_in_flight_end_on_the_former_connection(rotation):
    assert await rotation.client.hello()
    with rotation.engine.lock:  # which calls wait for
        waiting = asyncio.create_task(rotation.client.status())
        await asyncio.sleep(0)  # it is sent
        rotation.new.issue("client2", "localhost").copy_to(rotation.of_client)
        rotation.trust(rotation.old, rotation.new)
        transport = rotation.client._transport
        former = transport._channel
        transport._renew()
        assert transport._channel is not former
        assert not waiting.done()
    assert (await waiting).epoch == rotation.engine.epoch
    assert (await rotation.client.hello()).epoch == rotation.engine.epoch


@pytest.mark.parametrize("side", ["of_server", "of_client"])
async def test_files_that_cannot_be_used_leave_the_former_ones_in_force(rotation, side, caplog):
    assert await rotation.client.hello()
    pair = getattr(rotation, side)
    half = rotation.old.issue("half", "localhost")  # whose key comes later
    pair.certificate.write_bytes(half.certificate.read_bytes())
    for _ in range(3):
        other = EngineClient(f"localhost:{rotation.server.port}", 5, None if side == "of_client" else rotation.tls)
        if side == "of_server":
            assert await other.hello()
        await other.close()
        assert await rotation.client.hello()
    key, certificate = (f"--{name}" if side == "of_server" else name for name in NAMES[side])
    (line,) = [record.getMessage() for record in caplog.records if "former certificates" in record.getMessage()]
    assert f"{key} {pair.key} is not the key of {certificate} {pair.certificate}" in line


NAMES = {
    "of_server": ("tls-private-key-file", "tls-cert-file"),
    "of_client": ("firmament-key-file", "firmament-cert-file"),
}


def test_a_socket_without_grpc_takes_no_certificates(pair):
    flags = {"firmament_address": "direct:/x"}
    assert loading.settings({}, flags).firmament_address == "direct:/x"
    with pytest.raises(OptionError, match=r"--firmament-ca-file: there are no certificates at direct:/x"):
        loading.settings({}, flags | {"firmament_ca_file": pair[2]})


@pytest.mark.parametrize(
    ("address", "local"),
    [
        ("unix:/x", True),
        ("localhost:1", True),
        ("127.0.0.1:1", True),
        ("[::1]:1", True),
        ("ipv4:127.9.9.9:1", True),
        ("dns:///localhost:1", True),
        ("0.0.0.0:1", False),
        ("[::]:1", False),
        (":1", False),
        ("localhost.example:1", False),
        ("10.0.0.7:1", False),
    ],
)
def test_a_service_on_another_machine_needs_certificates(address, local, pair):
    flags = {"firmament_address": address}
    if not local:
        with pytest.raises(OptionError, match=r"is on another machine: give --firmament-ca-file, --firmament-cert"):
            loading.settings({}, flags)
    assert loading.settings({}, flags | ({} if local else {"firmament_insecure": True})).firmament_address == address
    assert loading.settings({}, flags | {"firmament_ca_file": pair[2]}).firmament_address == address
    with pytest.raises(OptionError, match=r"--firmament-insecure and --firmament-ca-file contradict each other"):
        loading.settings({}, flags | {"firmament_ca_file": pair[2], "firmament_insecure": True})


def test_statistics_of_other_machines_are_wanted_or_refused():
    flags = {"stats_address": "0.0.0.0:9091"}
    with pytest.raises(OptionError, match=r"--stats-address 0.0.0.0:9091 is open to other machines, and has no TLS"):
        loading.settings({}, flags)
    assert loading.settings({}, flags | {"firmament_insecure": True}).stats_address == "0.0.0.0:9091"
