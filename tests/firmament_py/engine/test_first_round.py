"""The first tasks do not wait for imports."""

import subprocess
import sys

FIRST_ROUND = """
import sys
from tests.builders import make_class, make_cluster, make_node, make_tasks
cluster = make_cluster(make_node("a", cpu=2), make_class(1, cpu=1))
before = set(sys.modules)
cluster.tell(make_tasks([1], 1))
assert cluster.names(cluster.run()) == {1: "a"}
print(*sorted(set(sys.modules) - before))
"""


def test_the_first_round_with_a_task_imports_nothing():
    done = subprocess.run([sys.executable, "-c", FIRST_ROUND], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.split() == []
