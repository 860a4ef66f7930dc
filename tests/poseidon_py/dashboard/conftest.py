import pytest

from tests.poseidon_py.dashboard.seen import Seen, served
from tests.poseidon_py.rig import Rig


@pytest.fixture
def plotly(tmp_path):
    """A small file in its place: the package is not needed."""
    found = tmp_path / "plotly.min.js"
    found.write_text("window.Plotly = {};\n" * 100)
    return found


@pytest.fixture
async def seen(plotly):
    """Two nodes; pods of the namespaces red and blue, of which one each waits."""
    async with Rig(nodes=()) as rig:
        rig.node("n1", labels={"zone": "a", "disk": "ssd"}, cpu="8", memory="16Gi", pods="10")
        rig.node("n2", labels={"zone": "b", "disk": "ssd"}, cpu="4", memory="16Gi", pods="10")
        seen = Seen(rig.store, rig.engine, plotly)
        seen.put("one", namespace="red", node="n1", cpu="3", memory="2Gi", phase="Running", owner="owner-of-red")
        seen.put("two", namespace="red", cpu="6", memory="1Gi", owner="owner-of-red", created="2026-01-01T00:00:05Z")
        seen.put("three", namespace="blue", node="n2", cpu="1", memory="4Gi", phase="Running")
        seen.put("four", namespace="blue", cpu="9", memory="1Gi")
        await rig.settle()
        for name in ("two", "four"):
            seen.conditions[f"uid-{name}"] = "0/2 nodes are available: 2 Insufficient cpu."
            rig.store.pods[f"uid-{name}"].unschedulable_by = ("NodeResourcesFit",)
        async with served(seen) as seen:
            yield seen
