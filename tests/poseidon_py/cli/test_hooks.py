"""`poseidon hooks` against a synthetic cluster."""

import asyncio
import json
import threading
import time

import pytest

from benchmarks.cluster import Cluster, ClusterSettings
from poseidon_py.cli.main import cli
from poseidon_py.hooks.config.hook_config import Hook, HookConfig
from poseidon_py.hooks.hooks import Hooks
from poseidon_py.hooks.sending.outcome import DELIVERED, Outcome
from poseidon_py.hooks.storage.config_maps import ConfigMapStore
from poseidon_py.hooks.transition import delivery_id
from poseidon_py.kube.client import Kube
from poseidon_py.kube.credentials import at
from tests.command_line import invoke
from tests.poseidon_py.hooks.world import make_transition

pytestmark = pytest.mark.slow

REFUSED = [make_transition(f"refused-{number}", number, at=time.time(), occasion=str(number)) for number in range(3)]
WAITING = make_transition("waiting", 9, at=time.time(), occasion="9")


class Controller:
    """A cluster and a controller with hooks, on a thread of their own."""

    def __init__(self, folder):
        self.kubeconfig = folder / "kubeconfig"
        self.refuse = True
        self.delivered = []
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever)
        self.thread.start()

    def run(self, work):
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(60)

    async def start(self):
        self.cluster = Cluster(ClusterSettings(nodes=0))
        await self.cluster.start()
        self.kubeconfig.write_text(self.cluster.kubeconfig())
        self.kube = Kube(at(self.cluster.url))
        await self.kube.start()
        await self.start_hooks()
        for transition in (*REFUSED, WAITING):
            self.hooks.transitioned(transition)
        await self.hooks.reported()
        await self.stop_hooks()

    async def start_hooks(self):
        store = ConfigMapStore(self.kube, "kube-system", "jobs", f"holder-{time.monotonic()}")
        config = HookConfig((Hook("billing", "http://x/"), Hook("stuck", "http://x/", namespaces=frozenset({"ns"}))))
        self.hooks = Hooks(config, store, senders=self.sender)
        await self.hooks.start()

    async def stop_hooks(self):
        await self.hooks.stop(5)

    def sender(self, hook):
        async def send(record):
            if hook.name == "stuck" or record.id == delivery_id(WAITING):
                return Outcome("status 500")
            if self.refuse:
                return Outcome("status 400: unknown user", permanent=True)
            self.delivered.append(record.id)
            return DELIVERED

        return send

    async def stop(self):
        await self.kube.close()
        await self.cluster.stop()

    def hooks_command(self, *arguments):
        return invoke(cli, "hooks", "--kubeconfig", str(self.kubeconfig), *arguments)


@pytest.fixture
def controller(tmp_path):
    found = Controller(tmp_path)
    found.run(found.start())
    yield found
    found.run(found.stop())
    found.loop.call_soon_threadsafe(found.loop.stop)
    found.thread.join()
    found.loop.close()


def dead_ids(controller):
    result = controller.hooks_command("--dead", "--json")
    return [record["id"] for store in json.loads(result.output) for record in store["dead"]]


def test_what_waits_and_what_is_dead(controller):
    result = controller.hooks_command()
    assert result.exit_code == 0, result.output
    assert "billing" in result.output
    assert "stuck" in result.output
    stores = json.loads(controller.hooks_command("--json").output)
    assert [store["store"] for store in stores] == ["jobs"]
    assert {(each["hook"], each["id"]) for each in stores[0]["pending"]} == {
        ("billing", delivery_id(WAITING)),
        *(("stuck", delivery_id(each)) for each in (*REFUSED, WAITING)),
    }
    assert {each["id"] for each in stores[0]["dead"]} == set(map(delivery_id, REFUSED))
    assert json.loads(controller.hooks_command("--json", "--hook", "stuck").output)[0]["dead"] == []
    shown = controller.hooks_command("--dead").output
    assert all(delivery_id(each) in shown for each in REFUSED)
    assert "unknown user" in shown


def test_retry_and_drop_while_the_controller_runs(controller, monkeypatch):
    monkeypatch.setattr("poseidon_py.hooks.hooks.POLL_SECONDS", 0.01)
    again, dropped, left = map(delivery_id, REFUSED)
    controller.refuse = False
    controller.run(controller.start_hooks())
    result = controller.hooks_command("--retry", again, "--wait", "60")
    assert (result.exit_code, result.output) == (0, "1 dead letters of jobs are delivered again\n")
    assert controller.hooks_command("--drop", dropped, "--wait", "60").output == "1 dead letters of jobs are dropped\n"
    controller.run(controller.stop_hooks())
    assert controller.delivered == [again]
    assert dead_ids(controller) == [left]


def test_requests_wait_for_a_controller(controller):
    result = controller.hooks_command("--drop", "all", "--wait", "0")
    assert result.output == "3 dead letters of jobs will be dropped once their controller runs\n"
    assert len(dead_ids(controller)) == 3
    controller.run(controller.start_hooks())
    result = controller.hooks_command("--drop", "all", "--wait", "60")
    assert result.exit_code == 0
    controller.run(controller.stop_hooks())
    assert dead_ids(controller) == []
    assert "there are no dead letters" in controller.hooks_command("--dead").output


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--retry", "absent"), 1, "there is no dead letter absent; `poseidon hooks --dead` shows their IDs"),
        (("--retry", "a", "--drop", "b"), 2, "--retry and --drop exclude each other; give one of them"),
    ],
)
def test_mistakes(controller, arguments, code, message):
    result = controller.hooks_command(*arguments)
    assert result.exit_code == code
    assert message in result.output


def test_without_a_cluster(tmp_path):
    result = invoke(cli, "hooks", "--kubeconfig", str(tmp_path / "absent"))
    assert result.exit_code == 2
    assert "there is no kubeconfig" in result.output


def test_check(tmp_path):
    file = tmp_path / "hooks.yaml"
    file.write_text("hooks: [{name: billing, url: 'https://a/b'}]")
    result = invoke(cli, "hooks", "--check", str(file))
    assert (result.exit_code, result.output) == (0, "billing: https://a/b, not signed\n")
    file.write_text("hooks: [{name: billing, url: x}, {name: A, url: 'http://a'}]")
    result = invoke(cli, "hooks", "--check", str(file))
    assert result.exit_code == 2
    assert [line.partition(":")[0] for line in result.output.splitlines()[1:]] == ["hooks[0].url", "hooks[1].name"]
