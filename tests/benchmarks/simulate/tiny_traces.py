"""Random traces that are small enough for brute force."""

from hypothesis import strategies as st

from benchmarks.traces.form import MachineEvent
from tests.benchmarks.traces.made import small

ADD, REMOVE, UPDATE = MachineEvent.ADD, MachineEvent.REMOVE, MachineEvent.UPDATE


@st.composite
def tiny(draw):
    """Up to 3 machines, removed, added again and updated, and up to 10 tasks, some in gangs; times in hundredths."""
    hundredths = st.integers(0, 30).map(lambda n: n / 100)
    machines = draw(st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4)), min_size=1, max_size=3))
    events = []
    for i in range(len(machines)):
        there = True
        for s in sorted(draw(st.lists(hundredths.filter(bool), unique=True, max_size=3))):
            kind = draw(st.sampled_from((REMOVE, UPDATE))) if there else ADD
            events.append((s, i, kind, draw(st.integers(1, 4)), draw(st.integers(1, 4))))
            there = kind != REMOVE
    jobs, tasks, gangs = draw(st.integers(1, 4)), [], {}
    for j in range(jobs):
        size, at = draw(st.integers(1, 4)), draw(hundredths)
        gangs[f"j{j}"] = draw(st.sampled_from((0, size)))
        for _ in range(size):
            duration = draw(st.none() | st.integers(1, 25).map(lambda n: n / 100))
            tasks.append((f"j{j}", at, duration, draw(st.integers(0, 3)), draw(st.integers(0, 2))))
    return small(tasks, machines, gangs, events)
