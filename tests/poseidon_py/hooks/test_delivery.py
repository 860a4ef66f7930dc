"""Deliveries over HTTP to a receiver with faults."""

import asyncio
import json
from contextlib import asynccontextmanager
from dataclasses import replace

import msgspec
import pytest
from aiohttp import web

from poseidon_py.hooks.config.hook_config import Hook, HookConfig, Retry
from poseidon_py.hooks.config.sources import Source
from poseidon_py.hooks.hooks import Hooks, HooksStoppedError
from poseidon_py.hooks.metrics import HookMetrics
from poseidon_py.hooks.records import TOTALS_KEY, Record
from poseidon_py.hooks.storage.store import MemoryStore, Request
from poseidon_py.hooks.transition import delivery_id
from tests.poseidon_py.hooks.receiver import KEY, Receiver
from tests.poseidon_py.hooks.world import make_transition

FAST = Retry(attempts=5, first=0.01, longest=0.05)


@pytest.fixture(autouse=True)
def removals_at_once(monkeypatch):
    monkeypatch.setattr("poseidon_py.hooks.journal.REMOVAL_SECONDS", 0.01)


def signed(name, receiver, **fields):
    source = Source(variable="KEY", environment={"KEY": KEY.decode()})
    hook = Hook(name, receiver.url, secret=source, retry=FAST, timeout=5.0)
    return replace(hook, **fields)


@asynccontextmanager
async def running(*hooks, store=None):
    metrics = HookMetrics()
    found = Hooks(HookConfig(hooks), store or MemoryStore(), metrics=metrics)
    await found.start()
    try:
        yield found
    finally:
        await found.stop(0)


def value(hooks, name, **labels):
    return hooks._metrics.registry.get_sample_value(name, labels)


async def until(condition):
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


def dead(store):
    records = [msgspec.json.decode(text, type=Record) for key, text in store.texts.items() if key != TOTALS_KEY]
    return [record for record in records if record.dead]


async def test_the_message_and_its_headers():
    async with Receiver(KEY) as receiver:
        hook = signed("billing", receiver, headers=(("X-Team", Source(text="a")),))
        async with running(hook) as hooks:
            transition = make_transition("train", 7, details={"cpu": "4"})
            hooks.transitioned(transition)
            await receiver.until(1)
        assert receiver.bodies == [
            {
                "id": "uid-train",
                "userID": "anna",
                "namespace": "ns",
                "currentState": "Running",
                "currentTime": "2026-01-01T00:00:07.000000Z",
                "machine": "job",
                "name": "train",
                "job": "train",
                "previousState": "Pending",
                "deliveryID": delivery_id(transition),
                "attempt": 1,
                "sequence": 1,
                "details": {"cpu": "4"},
            }
        ]
        headers = receiver.headers[0]
        assert headers["Content-Type"] == "application/json"
        assert headers["Poseidon-Delivery"] == delivery_id(transition)
        assert headers["X-Team"] == "a"


@pytest.mark.parametrize(
    "fault",
    [500, 503, 429, 408, "reset", web.Response(status=502, text="x" * 100_000)],
    ids=["500", "503", "429", "408", "reset after it was processed", "a long answer"],
)
async def test_a_failed_attempt_is_repeated_under_the_same_id_and_before_the_next_of_the_job(fault):
    async with Receiver(KEY) as receiver:
        receiver.faults = [fault]
        async with running(signed("billing", receiver)) as hooks:
            first, second = make_transition("a", 1), make_transition("a", 2)
            hooks.transitioned(first)
            hooks.transitioned(second)
            await receiver.until(3)
        assert receiver.ids() == [delivery_id(first), delivery_id(first), delivery_id(second)]
        assert [body["attempt"] for body in receiver.bodies] == [1, 2, 1]
        assert receiver.bodies[0]["sequence"] == receiver.bodies[1]["sequence"] < receiver.bodies[2]["sequence"]


async def test_no_answer_in_time():
    async with Receiver(KEY) as receiver:
        receiver.faults = ["hang"]
        async with running(signed("billing", receiver, timeout=0.1)) as hooks:
            hooks.transitioned(make_transition())
            await receiver.until(2)
            await until(lambda: value(hooks, "poseidon_hook_attempts_total", hook="billing", outcome="delivered"))
            assert value(hooks, "poseidon_hook_attempts_total", hook="billing", outcome="failed") == 1


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (web.Response(status=400, text="no  such\nuser"), "status 400: no such user"),
        (web.Response(status=404), "status 404"),
        (
            web.Response(status=302, headers={"Location": "/other"}),
            "status 302: redirects are not followed; give the final URL",
        ),
    ],
    ids=["400", "404", "redirect"],
)
async def test_a_permanent_error_is_a_dead_letter_at_once_and_the_job_goes_on(answer, error):
    async with Receiver(KEY) as receiver:
        receiver.faults = [answer]
        store = MemoryStore()
        async with running(signed("billing", receiver), store=store) as hooks:
            refused, next_one = make_transition("a", 1), make_transition("a", 2)
            hooks.transitioned(refused)
            hooks.transitioned(next_one)
            await receiver.until(2)
            await until(lambda: dead(store))
            assert value(hooks, "poseidon_hook_dead_letters", hook="billing") == 1
        assert receiver.ids() == [delivery_id(refused), delivery_id(next_one)]
        assert [(each.id, each.error, each.attempts) for each in dead(store)] == [(delivery_id(refused), error, 1)]


async def test_the_last_attempt_makes_a_dead_letter_and_not_one_before():
    async with Receiver(KEY) as receiver:
        receiver.faults = [500] * FAST.attempts
        store = MemoryStore()
        async with running(signed("billing", receiver), store=store) as hooks:
            hooks.transitioned(make_transition("a", 1))
            hooks.transitioned(make_transition("a", 2))
            await receiver.until(FAST.attempts + 1)
            await until(lambda: dead(store))
        assert [body["attempt"] for body in receiver.bodies] == [1, 2, 3, 4, 5, 1]
        assert [each.attempts for each in dead(store)] == [FAST.attempts]


async def test_a_failing_delivery_delays_only_its_own_job():
    async with Receiver(KEY) as receiver:
        receiver.faults = ["hang"]
        async with running(signed("billing", receiver, concurrency=2)) as hooks:
            hooks.transitioned(make_transition("slow", 1))
            await receiver.until(1)
            hooks.transitioned(make_transition("slow", 2))
            others = [make_transition(f"job-{number}", number) for number in range(20)]
            for transition in others:
                hooks.transitioned(transition)
            await receiver.until(21)
            assert {body["job"] for body in receiver.bodies[1:]} == {each.job for each in others}
            receiver.release.set()
            await receiver.until(22)
            assert receiver.bodies[-1]["job"] == "slow"
        assert receiver.most_active == 2


async def test_a_hook_that_hangs_delays_no_other_and_not_the_controller():
    async with Receiver(KEY) as stuck, Receiver(KEY) as receiver:
        stuck.faults = ["hang"] * 100
        async with running(signed("stuck", stuck), signed("billing", receiver)) as hooks:
            for number in range(50):
                hooks.transitioned(make_transition(f"job-{number}", number))
            await hooks.reported()
            await receiver.until(50)
            assert stuck.active == 8  # the default concurrency
            assert value(hooks, "poseidon_hook_pending", hook="stuck") == 50


async def test_retry_after_stops_the_whole_hook():
    async with Receiver(KEY) as receiver:
        receiver.faults = [web.Response(status=429, headers={"Retry-After": "3600"})]
        retry = Retry(attempts=5, first=0.01, longest=3600)
        async with running(signed("billing", receiver, retry=retry)) as hooks:
            hooks.transitioned(make_transition("a", 1))
            await until(lambda: value(hooks, "poseidon_hook_attempts_total", hook="billing", outcome="failed"))
            hooks.transitioned(make_transition("b", 2))
            await hooks.reported()
            for _ in range(100):
                await asyncio.sleep(0)
            assert len(receiver.bodies) == 1


async def test_keys_are_exchanged_without_a_restart(tmp_path):
    file = tmp_path / "key"
    file.write_text(KEY.decode())
    async with Receiver(KEY) as receiver:
        async with running(Hook("billing", receiver.url, secret=Source(file=file), retry=FAST)) as hooks:
            hooks.transitioned(make_transition("a", 1))
            await receiver.until(1)
            file.write_text("another key of 32 bytes, at least\n" + KEY.decode())
            hooks.transitioned(make_transition("a", 2))
            await receiver.until(2)
            receiver.keys = (b"another key of 32 bytes, at least",)
            hooks.transitioned(make_transition("a", 3))
            await receiver.until(3)
            file.unlink()  # the keys that were read last go on
            hooks.transitioned(make_transition("a", 4))
            await receiver.until(4)
        assert [body["attempt"] for body in receiver.bodies] == [1, 1, 1, 1]


async def test_a_transition_that_is_reported_again_has_the_same_id():
    async with Receiver(KEY) as receiver:
        store = MemoryStore()
        for number in (1, 2):
            async with running(signed("billing", receiver), store=store) as hooks:
                hooks.transitioned(make_transition("a", 1, details={"seen": "now"}))
                hooks.transitioned(make_transition("a", 1))
                await receiver.until(number)
                await until(lambda hooks=hooks: value(hooks, "poseidon_hook_pending", hook="billing") == 0)
                await hooks.stop()  # removes what was delivered
        assert len(receiver.ids()) == 2
        assert len(set(receiver.ids())) == 1
        first, second = receiver.bodies
        assert first["sequence"] < second["sequence"]


async def test_a_restart_after_an_acknowledgement_that_was_lost_delivers_again():
    async with Receiver(KEY) as receiver:
        receiver.faults = ["hang"]
        store = MemoryStore()
        async with running(signed("billing", receiver), store=store) as hooks:
            hooks.transitioned(make_transition("a", 1))
            await receiver.until(1)
        async with running(signed("billing", receiver), store=store):
            await receiver.until(2)
        assert receiver.bodies[0] == receiver.bodies[1]


async def test_users_retry_and_drop_dead_letters(monkeypatch):
    monkeypatch.setattr("poseidon_py.hooks.hooks.POLL_SECONDS", 0.01)
    async with Receiver(KEY) as receiver:
        receiver.faults = [400, 400, 400]
        store = MemoryStore()
        async with running(signed("billing", receiver), store=store) as hooks:
            transitions = [make_transition(f"job-{number}", number) for number in range(3)]
            for transition in transitions:
                hooks.transitioned(transition)
            await until(lambda: len(dead(store)) == 3)
            again, dropped, left = map(delivery_id, transitions)
            store.asked = [Request("retry", f"billing.{again}"), Request("drop", f"billing.{dropped}")]
            store.asked += [Request("retry", "billing.unknown"), Request("drop", "absent.x")]
            await receiver.until(4)
            await until(lambda: store.asked == [] and len(dead(store)) == 1)
            assert receiver.ids()[3:] == [again]
            assert [each.id for each in dead(store)] == [left]


@pytest.mark.slow
async def test_an_endpoint_that_is_down_for_long_takes_limited_memory(caplog):
    """What waits is limited, and so are dead letters; the oldest go first, and are counted."""
    caplog.set_level("CRITICAL")
    store = MemoryStore()
    hook = Hook("down", "http://127.0.0.1:9/", max_pending=100, max_dead=50, concurrency=4)
    transitions = [make_transition(f"job-{number % 7}", number) for number in range(1000)]
    async with running(hook, store=store) as hooks:
        for start in range(0, 1000, 100):
            for transition in transitions[start : start + 100]:
                hooks.transitioned(transition)
            await hooks.reported()
        assert value(hooks, "poseidon_hook_pending", hook="down") == 100
        assert value(hooks, "poseidon_hook_dead_letters", hook="down") == 50
        assert value(hooks, "poseidon_hook_dead_letters_dropped_total", hook="down") == 850
        assert value(hooks, "poseidon_hook_overflow_total", hook="down") == 900
        await hooks.stop(1)
    assert len(store.texts) == 1 + 150
    assert json.loads(store.texts[TOTALS_KEY])["dropped"] == {"down": 850}
    waiting = {delivery_id(transition) for transition in transitions[-100:]}
    stored = {key.partition(".")[2] for key in store.texts if key != TOTALS_KEY} - {each.id for each in dead(store)}
    # those in flight at an overflow are spared, in favour of later ones
    assert len(stored - waiting) <= hook.concurrency


async def test_deliveries_of_a_hook_that_is_no_longer_configured_are_dead_letters():
    store = MemoryStore()
    async with running(Hook("old", "http://127.0.0.1:9/"), store=store) as hooks:
        hooks.transitioned(make_transition())
        await hooks.reported()
    async with running(Hook("new", "http://127.0.0.1:9/"), store=store) as hooks:
        await until(lambda: dead(store))
    assert [each.error for each in dead(store)] == ["no hook named old is configured"]


async def test_what_cannot_be_read_is_removed_and_the_others_are_delivered(caplog):
    async with Receiver(KEY) as receiver:
        store = MemoryStore()
        async with running(signed("billing", receiver, concurrency=1), store=store) as hooks:
            receiver.faults = ["hang"]
            hooks.transitioned(make_transition("a", 1))
            await receiver.until(1)
        store.texts |= {"billing.bad": "{", "billing.other": next(iter(t for k, t in store.texts.items() if "." in k))}
        store.texts[TOTALS_KEY] = "[]"
        async with running(signed("billing", receiver), store=store) as hooks:
            await receiver.until(2)
            await until(lambda: set(store.texts) == {TOTALS_KEY})
        assert "billing.bad is removed" in caplog.text
        assert "billing.other is removed" in caplog.text


async def test_transitions_before_the_start_and_after_the_stop():
    async with Receiver(KEY) as receiver:
        store = MemoryStore()
        hooks = Hooks(HookConfig((signed("billing", receiver),)), store)
        hooks.transitioned(make_transition("a", 1))
        with pytest.raises(HooksStoppedError, match="not started"):
            await hooks.reported()
        await hooks.start()
        await receiver.until(1)
        await hooks.stop()
        hooks.transitioned(make_transition("a", 2))
        with pytest.raises(HooksStoppedError, match="were stopped"):
            await hooks.reported()
        assert await hooks.wait() == "the hooks were stopped"
        assert value(hooks, "poseidon_hook_transitions_lost_total") == 1


async def test_a_transition_with_impossible_values_does_not_stop_the_controller(caplog):
    async with Receiver(KEY) as receiver:
        async with running(signed("billing", receiver)) as hooks:
            hooks.transitioned(make_transition("nan", 1, at=float("nan"), occasion="1"))
            hooks.transitioned(make_transition("long", 2, details={"a": "x" * 10_000, "b": "y"}, name="n" * 5000))
            hooks.transitioned(make_transition("none", 3, user_id=None, details=None))
            hooks.transitioned(make_transition("what", 4, at="yesterday"))
            hooks.transitioned(make_transition("fine", 5))
            await receiver.until(4)
        assert {body["job"] for body in receiver.bodies} == {"nan", "long", "none", "fine"}
        long = next(body for body in receiver.bodies if body["job"] == "long")
        assert long["details"] == {"truncated": "true"}
        assert len(long["name"]) == 1024
        assert "a transition was not taken" in caplog.text
