"""Each guarantee of the keyed queue, then all of them compared with a model."""

import asyncio
from collections.abc import Callable

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from poseidon_py.util.work_queue import KeyedQueue
from tests.effort import examples


class Later:
    """A fake of the event loop's timers."""

    def __init__(self) -> None:
        self.calls: list[tuple[float, Callable[[], None]]] = []

    def __call__(self, seconds, call):
        self.calls.append((seconds, call))

    def fire(self):
        calls, self.calls = self.calls, []
        for _, call in calls:
            call()


@pytest.fixture
def later():
    return Later()


@pytest.fixture
def queue(later):
    return KeyedQueue("test", call_later=later)


async def take(queue, max_items=10):
    return await asyncio.wait_for(queue.get(max_items), 1)


async def nothing_ready(queue):
    getting = asyncio.ensure_future(queue.get(10))
    for _ in range(3):
        await asyncio.sleep(0)
    idle = not getting.done()
    getting.cancel()
    await asyncio.gather(getting, return_exceptions=True)
    return idle


async def test_a_key_in_work_is_not_handed_out_again_before_done(queue):
    queue.add("a")
    assert await take(queue) == ["a"]
    queue.add("a")
    assert await nothing_ready(queue)
    queue.done(["a"])
    assert await take(queue) == ["a"]


async def test_adds_coalesce(queue):
    for _ in range(5):
        queue.add("a")
    assert len(queue) == 1
    assert await take(queue) == ["a"]
    queue.done(["a"])
    assert await nothing_ready(queue)


async def test_adds_while_in_work_coalesce_and_are_not_lost(queue):
    queue.add("a")
    await take(queue)
    queue.add("a")
    queue.add("a")
    queue.done(["a"])
    assert await take(queue) == ["a"]
    queue.done(["a"])
    assert await nothing_ready(queue)


async def test_keys_are_handed_out_in_the_order_in_which_they_became_ready(queue):
    for key in "cab":
        queue.add(key)
    queue.add("c")
    assert await take(queue, 2) == ["c", "a"]
    queue.add("c")
    queue.add("d")
    queue.done(["c", "a"])  # ready only now
    assert await take(queue) == ["b", "d", "c"]


async def test_a_worker_takes_what_is_ready_and_does_not_wait_for_more(queue):
    for key in "abc":
        queue.add(key)
    assert await take(queue, 2) == ["a", "b"]
    assert await take(queue, 2) == ["c"]


async def test_every_waiting_worker_is_woken_when_there_is_work_for_it(queue):
    workers = [asyncio.ensure_future(queue.get(1)) for _ in range(3)]
    await asyncio.sleep(0)
    for key in "abc":
        queue.add(key)
    batches = await asyncio.wait_for(asyncio.gather(*workers), 1)
    assert sorted(batches) == [["a"], ["b"], ["c"]]


async def test_keys_that_become_ready_together_wake_as_many_workers(queue):
    queue.add("a")
    queue.add("b")
    await take(queue)
    queue.add("a")
    queue.add("b")
    workers = [asyncio.ensure_future(queue.get(1)) for _ in range(2)]
    await asyncio.sleep(0)
    queue.done(["a", "b"])
    assert await asyncio.wait_for(asyncio.gather(*workers), 1) == [["a"], ["b"]]


async def test_a_worker_that_is_cancelled_as_it_is_woken_wakes_the_next(queue):
    first, second = (asyncio.ensure_future(queue.get(1)) for _ in range(2))
    await asyncio.sleep(0)
    queue.add("a")
    first.cancel()
    assert await asyncio.wait_for(second, 1) == ["a"]


async def test_delays_of_retries_double_until_the_key_is_forgotten(queue, later):
    for _ in range(3):
        queue.retry("a")
    assert [seconds for seconds, _ in later.calls] == [0.05, 0.1, 0.2]
    queue.forget("a")
    assert queue.retry("a") == 0.05
    assert queue.retry("b", min_delay=3.0) == 3.0
    assert await nothing_ready(queue)
    later.fire()
    assert await take(queue) == ["a", "b"]


def test_the_delay_of_retries_has_a_limit(queue):
    assert max(queue.retry("a") for _ in range(100)) == 30.0


async def test_a_deferred_key_goes_with_the_next_urgent_one(queue, later):
    queue.add("a", urgent=False)
    assert (len(queue), queue.urgent) == (1, 0)
    assert await nothing_ready(queue)
    queue.add("b")
    assert await take(queue) == ["b", "a"]
    assert queue.urgent == 0


async def test_deferred_keys_fill_a_batch_up_to_its_limit(queue, later):
    queue.add("a", urgent=False)
    queue.add("b", urgent=False)
    queue.add("c")
    assert await take(queue, 2) == ["c", "a"]
    assert await nothing_ready(queue)
    later.fire()
    assert await take(queue) == ["b"]


async def test_deferral_is_extended_while_its_callback_returns_true(queue, later):
    busy = True
    queue.extend_deferral = lambda: busy
    queue.add("a", urgent=False)
    queue.add("b")
    assert await take(queue) == ["b"]
    for _ in range(5):
        later.fire()
    assert await nothing_ready(queue)
    busy = False
    later.fire()
    assert await take(queue) == ["a"]
    later.fire()
    assert later.calls == []


async def test_deferral_is_not_extended_forever(queue, later):
    queue.extend_deferral = lambda: True
    for key in "ab":  # for the second no longer than for the first
        queue.add(key, urgent=False)
        for _ in range(99):
            later.fire()
        assert await nothing_ready(queue)
        later.fire()
        assert await take(queue) == [key]


async def test_a_deferred_key_that_is_added_as_urgent_is_handed_out_while_others_stay_deferred(queue):
    queue.extend_deferral = lambda: True
    queue.add("a", urgent=False)
    queue.add("b", urgent=False)
    queue.add("a")
    assert await take(queue) == ["a"]
    queue.shut_down()
    assert await take(queue) == ["b"]


async def test_a_deferred_key_is_handed_out_after_the_delay(queue, later):
    queue.add("a", urgent=False)
    queue.add("b", urgent=False)
    assert [seconds for seconds, _ in later.calls] == [0.1]  # one timer for both
    getting = asyncio.ensure_future(queue.get(10))
    await asyncio.sleep(0)
    later.fire()
    assert await asyncio.wait_for(getting, 1) == ["a", "b"]
    queue.add("c", urgent=False)
    assert await nothing_ready(queue)
    assert len(later.calls) == 1


async def test_a_deferred_key_becomes_urgent(queue):
    queue.add("a", urgent=False)
    queue.add("a")
    assert await take(queue) == ["a"]
    queue.add("a", urgent=False)
    queue.add("a")  # while it is in work
    queue.done(["a"])
    assert await take(queue) == ["a"]


async def test_a_key_deferred_while_in_work_is_deferred_after_done(queue, later):
    queue.add("a")
    await take(queue)
    queue.add("a", urgent=False)
    queue.done(["a"])
    assert await nothing_ready(queue)
    later.fire()
    assert await take(queue) == ["a"]


async def test_deferred_keys_are_handed_out_at_shutdown(queue):
    queue.add("a")
    await take(queue)
    queue.add("a", urgent=False)
    queue.add("b", urgent=False)
    queue.shut_down()
    assert await take(queue) == ["b"]
    queue.done(["a"])
    assert await take(queue) == ["a"]
    assert await take(queue) == []


async def test_shutdown_drains(queue, later):
    queue.add("a")
    queue.add("b")
    queue.retry("late")
    idle = asyncio.ensure_future(KeyedQueue.get(queue, 1))
    assert await idle == ["a"]
    queue.add("a")  # while in work
    queue.shut_down()
    queue.add("c")
    later.fire()
    assert await take(queue) == ["b"]
    queue.done(["a", "b"])
    assert await take(queue) == ["a"]
    queue.done(["a"])
    assert await take(queue) == []


async def test_shutdown_wakes_waiting_workers(queue):
    workers = [asyncio.ensure_future(queue.get(1)) for _ in range(2)]
    await asyncio.sleep(0)
    queue.shut_down()
    assert await asyncio.wait_for(asyncio.gather(*workers), 1) == [[], []]


KEYS = st.sampled_from("abcde")
DEFER_SECONDS = 0.07
"""Unlike the delay of any retry."""


class QueueAgainstModel(RuleBasedStateMachine):
    """The model: ordered lists of ready and of deferred keys, the batches in work, and the keys added meanwhile, with
    whether urgently."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.later = Later()
        self.queue: KeyedQueue[str] = KeyedQueue("model", defer_seconds=DEFER_SECONDS, call_later=self.later)
        self.queue.extend_deferral = lambda: self.busy
        self.busy = False
        self.ready: list[str] = []
        self.deferred: list[str] = []
        self.urgent_keys: set[str] = set()
        self.batches: list[list[str]] = []
        self.again: dict[str, bool] = {}
        self.delayed: list[str] = []

    def teardown(self) -> None:
        # nothing is lost: what is still to be handed out comes out
        self.queue.shut_down()
        remaining = self.ready + self.deferred
        for batch in self.batches:
            self.queue.done(batch)
            remaining += [k for k in batch if k in self.again]
        if remaining:
            assert self.loop.run_until_complete(self.queue.get(100)) == remaining
        assert self.loop.run_until_complete(self.queue.get(100)) == []
        self.loop.close()

    def _add(self, key: str, urgent: bool = True) -> None:
        if any(key in batch for batch in self.batches):
            self.again[key] = self.again.get(key, False) or urgent
        elif key in self.deferred and urgent:
            self.deferred.remove(key)
            self.ready.append(key)
            self.urgent_keys.add(key)
        elif key in self.ready:
            if urgent:
                self.urgent_keys.add(key)
        elif key not in self.deferred:
            self._present(key, urgent)

    def _present(self, key: str, urgent: bool) -> None:
        (self.ready if urgent else self.deferred).append(key)
        if urgent:
            self.urgent_keys.add(key)

    @rule(key=KEYS, urgent=st.booleans())
    def add(self, key: str, urgent: bool) -> None:
        self.queue.add(key, urgent=urgent)
        self._add(key, urgent)

    @rule(key=KEYS)
    def retry(self, key: str) -> None:
        self.queue.retry(key)
        self.delayed.append(key)

    @rule(busy=st.booleans())
    def hold(self, busy: bool) -> None:
        self.busy = busy

    @rule()
    def time_passes(self) -> None:
        calls = self.later.calls
        self.later.fire()
        # timers in the order in which they were set: retries, and one for the deferred keys
        for seconds, _ in calls:
            if seconds == DEFER_SECONDS:
                if not self.busy:
                    self.ready += self.deferred
                    self.deferred.clear()
            else:
                self._add(self.delayed.pop(0))

    @precondition(lambda self: not self.ready)
    @rule()
    def nothing_to_get(self) -> None:
        assert self.loop.run_until_complete(nothing_ready(self.queue))

    @precondition(lambda self: self.ready)
    @rule(max_items=st.integers(1, 4))
    def get(self, max_items: int) -> None:
        batch = self.loop.run_until_complete(self.queue.get(max_items))
        taken_along = 0 if self.busy else max(0, max_items - len(self.ready))
        assert batch == self.ready[:max_items] + self.deferred[:taken_along]
        assert not any(key in other for other in self.batches for key in batch)
        del self.ready[:max_items], self.deferred[:taken_along]
        self.urgent_keys.difference_update(batch)
        self.batches.append(batch)

    @precondition(lambda self: self.batches)
    @rule(data=st.data())
    def done(self, data) -> None:
        batch = self.batches.pop(data.draw(st.integers(0, len(self.batches) - 1)))
        self.queue.done(batch)
        for key in batch:
            if key in self.again:
                self._present(key, self.again.pop(key))

    @invariant()
    def counts_agree(self) -> None:
        assert len(self.queue) == len(self.ready) + len(self.deferred) + len(self.again)
        assert self.queue.urgent == len(self.urgent_keys) + sum(self.again.values())
        assert self.queue.working == sum(map(len, self.batches))


TestQueueAgainstModel = QueueAgainstModel.TestCase
TestQueueAgainstModel.settings = examples(40, steps=30)
