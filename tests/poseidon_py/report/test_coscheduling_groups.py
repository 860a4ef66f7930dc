"""The status of PodGroups of scheduler-plugins: phases as its controller derives them from those of the pods."""

import pytest

from poseidon_py.report.pod_groups import coscheduling_status
from poseidon_py.state.gangs.by_pod_group import COSCHEDULING
from tests.poseidon_py.report.test_volcano_groups import BOUND, DONE, FAILED, RUNS
from tests.poseidon_py.state.gangs.builders import owner_or_group
from tests.poseidon_py.state.gangs.rig import Rig


@pytest.mark.parametrize(
    ("pods", "phase", "counts"),
    [
        pytest.param([{}], "Pending", (0, 0, 0), id="one-is-missing"),
        pytest.param([{}, BOUND], "Scheduling", (0, 0, 0), id="all-exist"),
        pytest.param([RUNS, BOUND], "Scheduling", (1, 0, 0), id="one-runs"),
        pytest.param([RUNS, RUNS], "Running", (2, 0, 0), id="all-run"),
        pytest.param([RUNS, DONE], "Running", (1, 1, 0), id="one-has-succeeded"),
        # they said Pending, and no counts, once the pods had ended
        pytest.param([DONE, DONE], "Finished", (0, 2, 0), id="all-have-succeeded"),
        pytest.param([DONE, DONE, RUNS], "Finished", (1, 2, 0), id="its-minimum-has-succeeded"),
        pytest.param([DONE, FAILED], "Failed", (0, 1, 1), id="one-has-failed"),
        pytest.param([FAILED, FAILED], "Failed", (0, 0, 2), id="all-have-failed"),
        pytest.param([FAILED, RUNS, RUNS], "Running", (2, 0, 1), id="the-failed-one-was-replaced"),
    ],
)
def test_the_status(pods, phase, counts):
    rig = Rig((COSCHEDULING, owner_or_group(COSCHEDULING, spec={"minMember": 2})))
    for number, fields in enumerate(pods):
        rig.pod(f"p{number}", labels={"scheduling.x-k8s.io/pod-group": "g"}, **fields)
    (group,) = rig.registry.groups.values()
    running, succeeded, failed = counts
    expected = {"phase": phase, "running": running, "succeeded": succeeded, "failed": failed}
    assert coscheduling_status(group) == expected
