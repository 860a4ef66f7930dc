"""One pass over the state: what it counts, who shares it, and that others go on meanwhile."""

import asyncio

from poseidon_py.dashboard import survey as module
from poseidon_py.dashboard.survey import Surveys
from tests.poseidon_py.rig import Rig


async def test_sums_agree_with_a_count_of_every_pod(monkeypatch):
    monkeypatch.setattr(module, "_STEP", 3)  # so that others go on in between
    async with Rig(nodes=(), leads=False) as rig:
        for number in range(5):
            rig.node(f"n{number}", cpu="16", memory="64Gi", pods="20", labels={"zone": f"z{number % 2}"})
        expected: dict[str, list[int]] = {f"n{number}": [0, 0, 0] for number in range(5)}
        for number in range(40):
            node = f"n{number % 6}" if number % 3 else ""  # n5 does not exist
            rig.pod(f"p{number}", cpu=f"{number}m", memory="1Gi", node=node, phase="Running" if node else "Pending",
                    namespace=f"ns{number % 4}")  # fmt: skip
            if node in expected:
                expected[node][0] += number
                expected[node][1] += 2**30
                expected[node][2] += 1
        await rig.settle()
        surveys = Surveys(rig.store, dict)
        turns = 0

        async def others():
            nonlocal turns
            while True:
                await asyncio.sleep(0)
                turns += 1

        beside = asyncio.create_task(others())
        found = await surveys.fresh()
        beside.cancel()
        assert turns > 10
        use = {
            node.name: [node.used.get("cpu", 0), node.used.get("memory", 0), node.pods] for node in found.nodes.values()
        }
        assert use == expected
        assert found.totals()["cpu"] == (sum(cpu for cpu, _, _ in expected.values()), 5 * 16_000)
        assert (found.placed, found.pending) == (26, 14)  # every third of 40 has no node
        assert dict(found.namespaces) == dict.fromkeys(("ns0", "ns1", "ns2", "ns3"), 10)


async def test_readers_share_a_pass_and_never_wait_for_the_next_one():
    now = [0.0]
    async with Rig(nodes=("n",)) as rig:
        surveys = Surveys(rig.store, dict, monotonic=lambda: now[0], cpu=lambda: 0.0)
        first, second = await asyncio.gather(surveys.newest(), surveys.newest())
        assert first is second
        rig.node("m")
        await rig.settle()
        now[0] = 2.0
        assert await surveys.newest() is first
        now[0] = 2.1
        assert await surveys.newest() is first  # and a pass begins
        await rig.settle()
        third = await surveys.newest()
        assert (set(third.nodes), third.number) == ({"n", "m"}, first.number + 1)
        now[0] = 5.0
        await surveys.newest()
        await rig.settle()
        assert (await surveys.newest()).number == third.number  # nothing else was found
        await surveys.stop()
