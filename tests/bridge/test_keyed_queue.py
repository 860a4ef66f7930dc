"""Each promise of the keyed queue by its name, then all of them against a model."""

import asyncio
from collections.abc import Callable

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from poseidon_py.keyed_queue import KeyedQueue


class Later:
    """Stands in for the event loop's timers."""

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


async def take(queue, most=10):
    return await asyncio.wait_for(queue.get(most), 1)


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


async def test_retries_come_after_delays_that_double_until_forgotten(queue, later):
    for _ in range(3):
        queue.retry("a")
    assert [seconds for seconds, _ in later.calls] == [0.05, 0.1, 0.2]
    queue.forget("a")
    assert queue.retry("a") == 0.05
    assert queue.retry("b", rest=3.0) == 3.0
    assert await nothing_ready(queue)
    later.fire()
    assert await take(queue) == ["a", "b"]


def test_the_delay_of_retries_has_a_limit(queue):
    assert max(queue.retry("a") for _ in range(100)) == 30.0


async def test_a_key_that_can_wait_goes_with_the_next_that_cannot(queue, later):
    queue.add("a", soon=False)
    assert (len(queue), queue.pressing) == (1, 0)
    assert await nothing_ready(queue)
    queue.add("b")
    assert await take(queue) == ["a", "b"]
    assert queue.pressing == 0


async def test_a_key_that_can_wait_does_not_wait_for_ever(queue, later):
    queue.add("a", soon=False)
    queue.add("b", soon=False)
    assert [seconds for seconds, _ in later.calls] == [0.1]  # one timer for both
    getting = asyncio.ensure_future(queue.get(10))
    await asyncio.sleep(0)
    later.fire()
    assert await asyncio.wait_for(getting, 1) == ["a", "b"]
    queue.add("c", soon=False)
    assert await nothing_ready(queue)
    assert len(later.calls) == 1


async def test_a_key_that_could_wait_and_is_added_again_to_come_soon_does(queue):
    queue.add("a", soon=False)
    queue.add("a")
    assert await take(queue) == ["a"]
    queue.add("a", soon=False)
    queue.add("a")  # while it is in work
    queue.done(["a"])
    assert await take(queue) == ["a"]


async def test_a_key_that_can_wait_and_was_in_work_waits_after_done(queue, later):
    queue.add("a")
    await take(queue)
    queue.add("a", soon=False)
    queue.done(["a"])
    assert await nothing_ready(queue)
    later.fire()
    assert await take(queue) == ["a"]


async def test_what_can_wait_is_handed_out_at_shutdown(queue):
    queue.add("a")
    await take(queue)
    queue.add("a", soon=False)
    queue.add("b", soon=False)
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


async def test_shutdown_wakes_those_who_wait(queue):
    workers = [asyncio.ensure_future(queue.get(1)) for _ in range(2)]
    await asyncio.sleep(0)
    queue.shut_down()
    assert await asyncio.wait_for(asyncio.gather(*workers), 1) == [[], []]


KEYS = st.sampled_from("abcde")


class QueueAgainstModel(RuleBasedStateMachine):
    """The model: an ordered list of ready keys, the batches in work, and what was added meanwhile."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.later = Later()
        self.queue: KeyedQueue[str] = KeyedQueue("model", call_later=self.later)
        self.ready: list[str] = []
        self.batches: list[list[str]] = []
        self.again: set[str] = set()
        self.patient: set[str] = set()
        self.due = False
        self.delayed: list[str] = []

    def teardown(self) -> None:
        # nothing is lost: what is still to be handed out comes out
        for batch in self.batches:
            self.queue.done(batch)
            self.ready += [k for k in batch if k in self.again]
        self.queue.shut_down()
        assert self.loop.run_until_complete(self.queue.get(100)) == self.ready
        self.loop.close()

    def _add(self, key: str, soon: bool = True) -> None:
        known = key in self.ready or key in self.again
        if soon:
            self.patient.discard(key)
        elif not known:
            self.patient.add(key)
        if any(key in batch for batch in self.batches):
            self.again.add(key)
            return
        if not known:
            self.ready.append(key)
        self.due |= soon

    @rule(key=KEYS, soon=st.booleans())
    def add(self, key: str, soon: bool) -> None:
        self.queue.add(key, soon=soon)
        self._add(key, soon)

    @rule(key=KEYS)
    def retry(self, key: str) -> None:
        self.queue.retry(key)
        self.delayed.append(key)

    @rule()
    def time_passes(self) -> None:
        self.later.fire()
        self.due = bool(self.ready)  # the timer of those that can wait, if it ran
        for key in self.delayed:
            self._add(key)
        self.delayed.clear()

    @precondition(lambda self: not (self.ready and self.due))
    @rule()
    def nothing_to_get(self) -> None:
        assert self.loop.run_until_complete(nothing_ready(self.queue))

    @precondition(lambda self: self.ready and self.due)
    @rule(most=st.integers(1, 4))
    def get(self, most: int) -> None:
        batch = self.loop.run_until_complete(self.queue.get(most))
        assert batch == self.ready[:most]
        assert not any(key in other for other in self.batches for key in batch)
        del self.ready[:most]
        self.patient.difference_update(batch)
        self.due &= bool(self.ready)
        self.batches.append(batch)

    @precondition(lambda self: self.batches)
    @rule(data=st.data())
    def done(self, data) -> None:
        batch = self.batches.pop(data.draw(st.integers(0, len(self.batches) - 1)))
        self.queue.done(batch)
        back = [key for key in batch if key in self.again]
        self.ready += back
        self.due |= any(key not in self.patient for key in back)
        self.again.difference_update(batch)

    @invariant()
    def counts_agree(self) -> None:
        assert len(self.queue) == len(self.ready) + len(self.again)
        assert self.queue.pressing == len(self.queue) - len(self.patient)
        assert self.queue.working == sum(map(len, self.batches))


TestQueueAgainstModel = QueueAgainstModel.TestCase
TestQueueAgainstModel.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
