"""Which flavor a workload takes: the cases that Kueue publishes end as there, or as the tables say."""

import pytest

from tests.firmament_py.sharing.flavored import outcome
from tests.firmament_py.sharing.kueue_flavors import ASSIGNED
from tests.firmament_py.sharing.kueue_scheduled import SCHEDULED


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in [*ASSIGNED, *SCHEDULED]])
def test_kueue(case):
    assert outcome(case) == (case.differs if case.why else case.expected)


def test_differences_have_reasons():
    for case in [*ASSIGNED, *SCHEDULED]:
        assert case.why or not case.differs
        assert not case.why or case.differs != case.expected
