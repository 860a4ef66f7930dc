"""LocalQueues that are served by past use."""

import pytest

from poseidon_py.describe.queues.model import id_of
from tests.poseidon_py.state.queues.kueue_objects import LABEL, kueue_rig, simple

BY_USE = {"admissionScope": {"admissionMode": "UsageBasedAdmissionFairSharing"}}
CONFIGURED = """
apiVersion: config.kueue.x-k8s.io/v1beta2
admissionFairSharing:
  usageHalfLifeTime: 168h
  resourceWeights: {cpu: 2, nvidia.com/gpu: "10", memory: 0.000001}
"""


@pytest.fixture
def rig():
    return kueue_rig()


def configure(rig, text):
    data = {"controller_manager_config.yaml": text}
    rig.put("ConfigMap", "kueue-manager-config", namespace="kueue-system", data=data)


def test_local_queues_are_served_by_past_use(rig):
    simple(rig, **BY_USE)
    rig.put("LocalQueue", "a", {"clusterQueue": "team-a", "fairSharing": {"weight": "2500m"}}, namespace="default")
    rig.put("LocalQueue", "b", {"clusterQueue": "team-a"}, namespace="default")
    configure(rig, CONFIGURED)
    message = rig.message()
    assert [(each.name, each.queue, each.HasField("weight"), each.weight) for each in message.local_queues] == [
        ("default/a", id_of("clusterqueue/team-a"), True, 2.5),
        ("default/b", id_of("clusterqueue/team-a"), False, 0.0),
    ]
    assert [each.by_past_use for each in message.queues] == [True]
    assert (message.half_life_seconds, message.sampling_seconds) == (168 * 3600, 300)
    # of a millicore, a byte, a device
    assert dict(message.resource_weights) == {"cpu": 0.002, "nvidia.com/gpu": 10, "memory": 1e-6}
    rig.pod("p", labels={LABEL: "a"})
    assert rig.sent("p").local_queue == id_of("local/default/a")
    assert rig.sent("p").queue == id_of("clusterqueue/team-a")
    assert rig.problems() == {}


def test_without_a_half_life_the_mode_has_no_effect_and_says_so(rig):
    simple(rig, **BY_USE)
    assert rig.problems() == {
        "team-a": ["spec.admissionScope: has no effect, as past use does not count; give --queue-half-life SECONDS"]
    }
    rig.queues.past_use.half_life_seconds = 60.0
    simple(rig, **BY_USE, cohortName="org")
    assert rig.problems() == {}
    assert rig.message().half_life_seconds == 60.0
    assert dict(rig.message().resource_weights) == {"cpu": 0.001}  # as if in cores
    simple(rig, admissionScope={"admissionMode": "Odd"})
    assert rig.problems()["team-a"][0].startswith("spec.admissionScope.admissionMode: 'Odd' is not valid")


@pytest.mark.parametrize("text", ["", "admissionFairSharing: 7", "a: [", "waitForPodsReady: {timeout: 1m}"])
def test_other_configurations_do_not_count(rig, text):
    simple(rig)
    configure(rig, text)
    assert rig.message().half_life_seconds == 0.0
    assert bool(rig.problems()) is bool(text)


def test_a_configuration_that_is_gone_does_not_count(rig):
    simple(rig)
    configure(rig, CONFIGURED)
    rig.drop("ConfigMap", "kueue-manager-config", namespace="kueue-system")
    assert rig.message().half_life_seconds == 0.0
