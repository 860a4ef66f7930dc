"""Delays of one cause do not depend on those of another, and a success ends the series of all."""

from poseidon_py.util.retries import Retries


def retries() -> Retries[str]:
    return Retries(1.0, {"unreached": 4.0, "answered": 100.0}, rng=lambda: 1.0)


def test_each_cause_has_its_own_delays_and_limit():
    it = retries()
    assert [it.delay("unreached") for _ in range(4)] == [1.0, 2.0, 4.0, 4.0]
    assert [it.delay("answered") for _ in range(4)] == [1.0, 2.0, 4.0, 8.0]


def test_the_first_one_may_be_at_once():
    it = retries()
    assert [it.delay("answered", first_at_once=True) for _ in range(3)] == [0.0, 2.0, 4.0]


def test_a_failure_is_news_once_in_a_series():
    it = retries()
    assert [it.news("a"), it.news("b"), it.news("a")] == [True, True, False]
    it.succeed()
    assert it.news("a")


def test_a_success_makes_all_delays_short_again():
    it = retries()
    for cause in ("unreached", "answered") * 3:
        it.delay(cause)
    it.succeed()
    assert (it.delay("unreached"), it.delay("answered", first_at_once=True)) == (1.0, 0.0)
