"""The example of docs/hooks-billing: usage is exact whatever is duplicated, out of order or missing."""

import asyncio
import importlib.util
import json
import sys
import threading
import time
import urllib.error
import urllib.request
from contextlib import closing
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from poseidon_py.hooks.config.hook_config import Hook, HookConfig, Retry, Selector
from poseidon_py.hooks.config.sources import Source
from poseidon_py.hooks.hooks import Hooks
from poseidon_py.hooks.records import Record
from poseidon_py.hooks.sending.payload import payload
from poseidon_py.hooks.sending.signature import sign
from poseidon_py.hooks.storage.store import MemoryStore
from poseidon_py.hooks.transition import delivery_id
from tests.effort import examples
from tests.paths import ROOT
from tests.poseidon_py.hooks.test_delivery import until
from tests.poseidon_py.hooks.world import EPOCH, make_transition


def load():
    path = ROOT / "docs" / "hooks-billing" / "billing.py"
    spec: Any = importlib.util.spec_from_file_location("billing_example", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["billing_example"] = module
    spec.loader.exec_module(module)
    return module


billing = load()
KEY = b"0123456789abcdef0123456789abcdef"


def event(replica, at, *, starts, user="anna", requests=None, since=None):
    states = {"before": "Pending", "after": "Running"} if starts else {"before": "Running", "after": "Completed"}
    details = {f"requests.{name}": str(amount) for name, amount in (requests or {"cpu": 2}).items()}
    if since is not None:
        details["since"] = f"2026-01-01T00:{since // 60:02d}:{since % 60:02d}Z"
    return make_transition(
        replica, machine="replica", user_id=user, at=EPOCH + at, occasion=f"{at}", details=details, **states
    )


def message(transition, sequence=1):
    return json.loads(payload(Record("billing", delivery_id(transition), sequence, EPOCH, transition)))


def usage(*transitions, now=1000):
    with closing(billing.Ledger(":memory:")) as ledger:
        for number, transition in enumerate(transitions):
            ledger.add(message(transition, number))
        return ledger.usage(EPOCH + now)


def test_resource_seconds_per_user():
    found = usage(
        event("a", 0, starts=True),
        event("b", 10, starts=True, user="ben", requests={"cpu": 0.5, "nvidia.com/gpu": 1}),
        event("a", 100, starts=False),
    )
    # a: 2 cpu for 100 s; b still runs: 0.5 cpu and a GPU for 990 s
    assert found == {
        "users": {
            "anna": {"seconds": 100, "cpu": 200},
            "ben": {"seconds": 990, "cpu": 495, "nvidia.com/gpu": 990},
        },
        "incomplete": [],
    }


def test_a_missing_start_is_listed_and_its_end_counts_if_the_controller_says_since_when():
    assert usage(event("a", 100, starts=False)) == {
        "users": {},
        "incomplete": [{"replica": "ns/a", "missing": "start", "ended": EPOCH + 100}],
    }
    assert usage(event("a", 100, starts=False, since=40))["users"] == {"anna": {"seconds": 60, "cpu": 120}}


def test_a_missing_end_is_listed():
    found = usage(event("a", 0, starts=True), event("a", 50, starts=True), event("a", 60, starts=False))
    assert found["users"] == {"anna": {"seconds": 10, "cpu": 20}}
    assert found["incomplete"] == [{"replica": "ns/a", "missing": "end", "started": EPOCH}]


@pytest.mark.slow
@given(st.data())
@examples(50)
def test_duplicates_and_the_order_of_arrival_have_no_effect(data):
    times = sorted(data.draw(st.sets(st.integers(0, 500), min_size=2, max_size=8)))
    events = [event(replica, at, starts=index % 2 == 0) for replica in ("a", "b") for index, at in enumerate(times)]
    runs = sum(end - start for start, end in zip(times[::2], times[1::2], strict=False))
    if len(times) % 2:
        runs += 1000 - times[-1]
    arrivals = data.draw(st.permutations(events + data.draw(st.lists(st.sampled_from(events), max_size=10))))
    assert usage(*arrivals) == {"users": {"anna": {"seconds": 2 * runs, "cpu": 4 * runs}}, "incomplete": []}


def test_other_transitions_do_not_count():
    assert usage(make_transition("a", machine="job"))["users"] == {}
    assert usage(make_transition("a", machine="replica", after="Failed"))["users"] == {}


@pytest.fixture
def running():
    ledger = billing.Ledger(":memory:")
    found = billing.server(ledger, [KEY], ("127.0.0.1", 0))
    thread = threading.Thread(target=found.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{found.server_address[1]}"
    found.shutdown()
    thread.join()
    found.server_close()
    ledger.close()


def get(url):
    with urllib.request.urlopen(url) as answer:
        return json.load(answer)


async def test_hooks_deliver_to_it(running):
    source = Source(variable="KEY", environment={"KEY": KEY.decode()})
    on = (Selector(machines=frozenset({"replica"})),)
    hook = Hook("billing", f"{running}/events", on, secret=source, retry=Retry(3, 0.01, 0.1))
    store = MemoryStore()
    hooks = Hooks(HookConfig((hook,)), store)
    await hooks.start()
    hooks.transitioned(event("a", 0, starts=True))
    hooks.transitioned(event("a", 30, starts=False))
    await hooks.reported()
    await hooks.stop(30)
    hooks = Hooks(HookConfig((hook,)), store)  # what the first one has not delivered
    await hooks.start()
    await hooks.reported()
    await until(lambda: hooks._metrics.registry.get_sample_value("poseidon_hook_pending", {"hook": "billing"}) == 0)
    await hooks.stop(30)
    assert await asyncio.to_thread(get, f"{running}/usage") == {
        "users": {"anna": {"seconds": 30, "cpu": 60}},
        "incomplete": [],
    }


@pytest.mark.parametrize(
    ("key", "age", "body", "status"),
    [
        pytest.param(KEY, 0, None, 200, id="genuine"),
        pytest.param(b"another key that is not known to it", 0, None, 401, id="another key"),
        pytest.param(KEY, 600, None, 401, id="a replay"),
        pytest.param(KEY, 0, b"{}", 400, id="not a message"),
    ],
)
def test_only_genuine_messages_count(running, key, age, body, status):
    sent = body if body is not None else msgspec.json.encode(message(event("a", 0, starts=True)))
    headers = {"Poseidon-Signature": sign([key], int(time.time()) - age, sent)}
    request = urllib.request.Request(f"{running}/events", sent, headers)
    try:
        with urllib.request.urlopen(request) as answer:
            found = answer.status
    except urllib.error.HTTPError as error:
        found = error.code
        error.close()
    assert found == status


def test_a_second_end_does_not_count_the_same_time_twice():
    """A pod that failed while it was deleted may have ended by either; its start is delivered, or missing."""
    ends = [event("a", 100, starts=False, since=40), event("a", 101, starts=False, since=40)]
    assert usage(event("a", 40, starts=True), *ends)["users"] == {"anna": {"seconds": 61, "cpu": 122}}
    assert usage(*ends)["users"] == {"anna": {"seconds": 61, "cpu": 122}}
