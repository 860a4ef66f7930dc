"""ElasticQuotas as a tree, and the queues of pods."""

import pytest

from poseidon_py.describe.queues.model import EVERY_NODE, Queue, Quota, Sharing, Victims, id_of
from tests.poseidon_py.state.queues.rig import Rig


@pytest.fixture
def rig():
    return Rig("elasticquota")


def quota(rig, namespace, name="q", **spec):
    rig.put("ElasticQuota", name, spec, namespace=namespace)


def test_each_quota_is_the_queue_of_its_namespace(rig):
    quota(rig, "a", min={"cpu": "2"}, max={"cpu": "4", "memory": "1Gi"})
    assert rig.tree() == {
        "elasticquotas/all": Queue("elasticquotas/all", "all elastic quotas"),
        "elasticquota/a/q": Queue(
            "elasticquota/a/q",
            "a/q",
            "elasticquotas/all",
            (Quota(EVERY_NODE, "cpu", 2000, limit=4000), Quota(EVERY_NODE, "memory", limit=2**30)),
            within=Victims.LOWER_PRIORITY,
            reclaim=Victims.ANY,
        ),
    }
    assert rig.queues.tree.rules.sharing is Sharing.CLASSICAL
    rig.pod("p", namespace="a")
    rig.pod("free", namespace="b")
    assert (rig.sent("p").queue, rig.sent("free").queue) == (id_of("elasticquota/a/q"), 0)
    quota(rig, "b")
    assert rig.sent("free").queue == id_of("elasticquota/b/q")
    rig.drop("ElasticQuota", "q", namespace="a")
    rig.wait()
    assert rig.sent("p").queue == 0
    assert set(rig.tree()) == {"elasticquotas/all", "elasticquota/b/q"}


def test_of_two_in_a_namespace_the_first_counts_and_the_other_says_so(rig):
    quota(rig, "a", "two")
    quota(rig, "a", "one")
    assert set(rig.tree()) == {"elasticquotas/all", "elasticquota/a/one"}
    (second,) = [each for each in rig.queues.declared() if each.inactive]
    assert (second.ref.name, second.inactive) == (
        "two",
        "ElasticQuota one is the one of namespace a; merge the two",
    )


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"min": {"cpu": 2}, "max": {"cpu": 1}}, "spec.max.cpu: is less than min; raise it, or lower spec.min"),
        (
            {"max": {"cpu": "x"}},
            "spec.max.cpu: 'x' is not valid, so the queue is closed; give a quantity like 8, 500m or 64Gi",
        ),
    ],
)
def test_an_invalid_amount_is_named(rig, spec, problem):
    quota(rig, "a", **spec)
    assert rig.problems() == {"a/q": [problem]}
