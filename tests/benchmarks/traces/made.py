"""Traces for tests: random ones, and a plain form for comparison."""

from __future__ import annotations

from hypothesis import strategies as st

from benchmarks.traces.form import FOREVER, SECOND, MachineEvent, Shape, Trace, TraceBuilder
from firmament_py.model.constraints import Operator, Requirement

WORDS = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc", "Z")), min_size=1, max_size=5)
"""Names and values: anything but white space and control characters."""

ONE_VALUE = st.sampled_from((Operator.IN, Operator.NOT_IN)).flatmap(
    lambda operator: st.builds(lambda k, v: Requirement(k, operator, (v,)), WORDS, WORDS)
)
BOUNDS = st.builds(
    lambda k, operator, v: Requirement(k, operator, (str(v),)),
    WORDS,
    st.sampled_from((Operator.GT, Operator.LT)),
    st.integers(-9, 9),
)
PRESENCE = st.builds(
    lambda k, operator: Requirement(k, operator), WORDS, st.sampled_from((Operator.EXISTS, Operator.DOES_NOT_EXIST))
)
SETS = st.builds(lambda k, vs: Requirement(k, Operator.IN, tuple(vs)), WORDS, st.lists(WORDS, min_size=1, max_size=3))


def traces(
    resources=("cpu", "memory", "example.com/gpu"), requirements=ONE_VALUE | BOUNDS | PRESENCE | SETS, plain=False
):
    """Random traces. plain: without gangs and labels of jobs, and with task indices from 0 (what google-v2 keeps)."""
    return st.composite(_draw)(resources, requirements, plain)


def _draw(draw, resources, requirements, plain):
    builder = TraceBuilder("t")
    times = st.integers(0, 10**13)
    amounts = st.dictionaries(st.sampled_from(resources), st.integers(0, 10**12), max_size=3)
    labels = st.dictionaries(WORDS, WORDS, max_size=2)
    for name in draw(st.lists(WORDS, unique=True, min_size=1, max_size=4)):
        row = builder.machine(name, draw(labels))
        there = False
        for us in sorted(draw(st.lists(times, unique=True, min_size=1, max_size=4))):
            kind = draw(st.sampled_from((MachineEvent.REMOVE, MachineEvent.UPDATE))) if there else MachineEvent.ADD
            builder.event(us, row, kind, {} if kind == MachineEvent.REMOVE else draw(amounts))
            there = kind != MachineEvent.REMOVE
    shapes = st.builds(
        lambda requests, priority, selector: Shape.of(requests, priority, selector),
        amounts,
        st.integers(-5, 400),
        st.lists(requirements, max_size=2, unique=True),
    )
    for name in draw(st.lists(WORDS, unique=True, min_size=1, max_size=4)):
        count = draw(st.integers(1, 5))
        gang = 0 if plain else draw(st.integers(0, count))
        job = builder.job(name, gang, {} if plain else draw(labels))
        for index in range(count) if plain else draw(st.permutations(range(2 * count)))[:count]:
            duration = draw(st.just(FOREVER) | st.integers(1, 10**13))
            builder.task(draw(times), job, duration, builder.shape(draw(shapes)), index)
    return builder.build()


def content(trace: Trace, names: bool = True):
    """The content of a trace in a canonical order; with `names` False machines and jobs are identified by number."""

    def offers(row):
        return tuple(sorted((k, v) for k, v in zip(trace.resources, row, strict=True) if v))

    def machine(i):
        labels = tuple(sorted(trace.machines[i].labels.items()))
        return (trace.machines[i].name, labels) if names else (i, labels)

    events = zip(trace.event_us, trace.event_machine, trace.event_kind, trace.event_allocatable.tolist(), strict=True)
    columns = (trace.task_us, trace.task_job, trace.task_index, trace.task_duration_us, trace.task_shape)
    tasks = zip(*(c.tolist() for c in columns), strict=True)
    return (
        sorted((int(us), machine(int(m)), int(k), offers(row)) for us, m, k, row in events),
        sorted(
            (
                (trace.jobs[j].name if names else j, i, us, d, trace.jobs[j].gang_minimum, trace.shapes[s],
                 sorted(trace.jobs[j].labels.items()))
                for us, j, i, d, s in tasks
            ),
            key=repr,
        ),
    )  # fmt: skip


def small(tasks, machines=((4, 8),), gangs=None, events=()):
    """A trace by hand. machines: (cpu, memory) each, there from 0 on; tasks: (job, submit s, duration s or None, cpu,
    memory) or with a priority after it; gangs: job -> minimum; events: (s, machine, kind, cpu, memory)."""
    builder = TraceBuilder("small")
    for i, (cpu, memory) in enumerate(machines):
        builder.event(0, builder.machine(f"m{i}"), MachineEvent.ADD, {"cpu": cpu, "memory": memory})
    for s, i, kind, cpu, memory in events:
        builder.event(int(s * SECOND), i, kind, {"cpu": cpu, "memory": memory})
    for name, submit, duration, cpu, memory, *priority in tasks:
        job = builder.job(name, (gangs or {}).get(name, 0))
        shape = builder.shape(Shape.of({"cpu": cpu, "memory": memory}, *priority))
        us = FOREVER if duration is None else int(duration * SECOND)
        builder.task(int(submit * SECOND), job, us, shape)
    return builder.build()
