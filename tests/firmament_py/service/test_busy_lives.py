"""No decision of a round is ever refused by the independent check, whatever a late bridge on a busy machine tells.

A round holds the engine's lock from its snapshot to its commit, so nothing changes in between: whatever the check
refuses is a defect of the engine.
"""

import pytest

from tests.effort import THOROUGH, seeds
from tests.firmament_py.service.busy_life import BusyLife

pytestmark = pytest.mark.slow  # compiles once, not in every worker

SECONDS = 600.0 if THOROUGH else 150.0
"""Of simulated time, for each seed."""


@seeds(12)
@pytest.mark.parametrize("beside", [False, True])
def test_a_busy_life(seed, beside):
    """beside: victims are searched for beside the rounds, and found when much has changed."""
    life = BusyLife(seed, beside=beside)
    life.live(SECONDS)
    counts = life.cluster.counts
    assert counts["rounds"] > 5
    assert counts["bound"] > 5
