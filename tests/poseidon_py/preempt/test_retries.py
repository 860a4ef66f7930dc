"""When a request is sent again: delays that double, begin anew with the next request, and end when time is over."""

from poseidon_py.preempt.attempt import Outcome, Result
from poseidon_py.preempt.retries import Retries

RETRY = Outcome(Result.RETRY)


def test_delays_begin_anew_with_the_next_request_within_the_same_time():
    now = 0.0
    retries = Retries(0.2, 10.0, lambda: now, lambda: 1.0)
    assert [retries.delay(RETRY) for _ in range(3)] == [0.2, 0.4, 0.8]
    retries.reset()
    assert retries.delay(RETRY) == 0.2
    now = 9.7
    assert retries.delay(RETRY) is None


def test_a_definite_outcome_is_not_retried():
    retries = Retries(0.2, 10.0, lambda: 0.0, lambda: 1.0)
    assert [retries.delay(Outcome(result)) for result in Result if result is not Result.RETRY] == [None] * 3
