"""The statistics of a round."""

import re

from firmament_py.network import cheapest_slots
from tests.builders import make_class, make_cluster, make_gang, make_node, make_tasks
from tests.paths import ROOT


def test_trials_are_counted_separately(monkeypatch):
    """A gang of two classes waits for task 2 to go: whether it would fit then, and when, is tried."""
    monkeypatch.setattr(cheapest_slots, "FEW", 0)  # each takes a network
    seen = []
    cluster = make_cluster(
        *(make_node("a", cpu=10), make_node("b", cpu=10)),
        *(make_class(1, cpu=6), make_class(2, cpu=5), make_class(3, cpu=7), make_class(4, cpu=1)),
        *(make_tasks([1], 1, on="a", lasting=True), make_tasks([2], 1, on="b")),
        *(make_gang(1, 2, created_us=0), make_tasks([11], 2, gang=1), make_tasks([12], 2, gang=1)),
        *(make_gang(2, 2, created_us=0), make_tasks([21], 2, gang=2), make_tasks([22], 3, gang=2)),
        make_tasks([30], 4),
        observer=lambda network, solution: seen.append(solution),
    )
    stats = cluster.run().stats
    assert stats.placed == 1
    assert stats.trials > 0
    assert stats.solves > 0
    assert stats.trials + stats.solves == len(seen)


def test_the_contract_and_the_documentation_name_every_stage():
    used: set[str] = set()
    for module in (ROOT / "firmament_py").rglob("*.py"):
        used |= set(re.findall(r'(?:lap\(|stage_seconds\[)"([a-z -]+)"(?:\)|\] =)', module.read_text()))
    declared = re.search(r"stage_seconds = 2;((?:\s*// .*\n)+)", (ROOT / "protos" / "flow.proto").read_text())
    assert declared is not None
    named = re.sub(r"\s*//\s*", " ", declared[1]).strip()
    assert {stage.strip() for stage in named.split(",")} == used
    table = (ROOT / "docs" / "architecture.md").read_text().partition("| stage | | file |\n")[2].partition("\n\n")[0]
    rows = [row.split("|")[1:4] for row in table.splitlines()[1:]]
    assert {stage for row in rows for stage in re.findall("`(.*?)`", row[0])} == used
    files = {path for row in rows for path in re.findall("`(.*?)`", row[2])} - {"policies/"}
    assert [path for path in sorted(files) if not (ROOT / "firmament_py" / path).exists()] == []
