"""Is there any way to place so many members of a gang on what nodes have left? A search that forgets none.

For gangs whose members are of several classes, where a flow decides too little: which members to choose, and how they
share nodes, is a packing problem. Members of one class and role are interchangeable, and so are nodes with the same
free amounts that suit the same classes; beyond that the search is exhaustive: class by class, the largest first, each
on the nodes that it fills best, as many as fit first. So its first way down is what a good greedy rule would do.
It gives up after a number of steps.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from firmament_py.model.arrays import I64, Bools
from firmament_py.snapshot.solo_capacity import task_slots


@dataclass(frozen=True, slots=True)
class Kind:
    """`count` members of class `cls` (a row of requests and suitable) and of one role."""

    cls: int
    role: int
    count: int


@dataclass(slots=True)
class Packing:
    """What a search found. places: for each kind the nodes (K,) of the members that it chose, None: no way. steps: how
    many it took. proven: whether None means that there is none."""

    places: list[I64] | None
    steps: int
    proven: bool


def pack(
    free: I64,
    requests: I64,
    suitable: Bools,
    kinds: Sequence[Kind],
    lacking: int,
    lacking_of_role: Sequence[int],
    most_steps: int,
) -> Packing:
    """Searches for places of `lacking` members, of each role at least as many as it lacks.

    free (N, R) is what nodes have left, requests (C, R) what one member of each class takes, suitable (C, N) where it
    may be. lacking is at least the sum of lacking_of_role.
    """
    search = _Search(free, requests, suitable, kinds, list(lacking_of_role))
    return search.run(lacking, most_steps)


@dataclass(frozen=True, slots=True)
class _Level:
    """What there is for one kind, as it has its turn: nodes that have room, the best first, slots of each, and the
    sum of the slots from each on; reach: most members of each later kind that could be placed."""

    nodes: list[int]
    slots: list[int]
    from_here: list[int]
    reach: list[int]
    look: list[bytes]


class _Search:
    def __init__(
        self, free: I64, requests: I64, suitable: Bools, kinds: Sequence[Kind], lacking_of_role: list[int]
    ) -> None:
        self._free = np.maximum(free, 0)
        self._requests = requests
        self._suitable = suitable
        self._scale = np.maximum(self._free.max(axis=0, initial=1), 1)
        share = (requests / self._scale).max(axis=1, initial=0.0)
        self._order = sorted(range(len(kinds)), key=lambda k: (-share[kinds[k].cls], kinds[k].cls, kinds[k].role))
        self._kinds = [kinds[k] for k in self._order]
        self._roles = lacking_of_role
        self._chosen: list[list[tuple[int, int]]] = [[] for _ in kinds]
        self._failed: set[tuple[object, ...]] = set()

    def run(self, lacking: int, most_steps: int) -> Packing:
        stack, steps = [self._turn(0, lacking)], 0
        while stack:
            deeper = next(stack[-1], None)
            if deeper is None:
                stack.pop()
                continue
            steps += 1
            left, frame = deeper
            if left == 0:
                return Packing(self._places(), steps, True)
            if steps >= most_steps:
                return Packing(None, steps, False)
            stack.append(frame)
        return Packing(None, steps, True)

    def _places(self) -> list[I64]:
        places = [np.zeros(0, np.int64) for _ in self._kinds]
        for k, chosen in zip(self._order, self._chosen, strict=True):
            places[k] = np.repeat([node for node, _ in chosen], [count for _, count in chosen]).astype(np.int64)
        return places

    def _turn(self, k: int, left: int) -> Iterator[tuple[int, "_Frame"]]:
        """Kind k begins, `left` members are still lacked."""
        if k == len(self._kinds):
            return
        state = (k, left, tuple(self._roles), self._free.tobytes())
        if state in self._failed:
            return
        if self._affordable(k, left):
            yield from self._place(k, self._level(k), 0, self._kinds[k].count, left)
        self._failed.add(state)

    def _place(self, k: int, level: _Level, at: int, count: int, left: int) -> Iterator[tuple[int, "_Frame"]]:
        """Kind k goes on from position `at` of its nodes, with `count` members to choose from."""
        kind, roles = self._kinds[k], self._roles
        request = self._requests[kind.cls]
        # of what is lacked some is kept for roles that are short
        spare = left - sum(roles)
        useful = min(count, spare + roles[kind.role]) if kind.role < len(roles) else min(count, spare)
        if not self._within_reach(k, level, at, useful, left):
            return
        seen: set[bytes] = set()
        for p in range(at, len(level.nodes)):
            if not self._within_reach(k, level, p, useful, left):
                break
            if level.look[p] in seen:
                continue  # one like it had its turn
            seen.add(level.look[p])
            node = level.nodes[p]
            for number in range(min(level.slots[p], useful), 0, -1):
                for_role = min(number, roles[kind.role]) if kind.role < len(roles) else 0
                if for_role:
                    roles[kind.role] -= for_role
                self._free[node] -= number * request
                self._chosen[k].append((node, number))
                yield left - number, self._place(k, level, p + 1, count - number, left - number)
                self._chosen[k].pop()
                self._free[node] += number * request
                if for_role:
                    roles[kind.role] += for_role
        yield left, self._turn(k + 1, left)

    def _level(self, k: int) -> _Level:
        classes = [kind.cls for kind in self._kinds[k:]]
        counts = np.array([kind.count for kind in self._kinds[k:]], np.int64)
        slots = task_slots(self._free, self._requests[classes], self._suitable[classes], counts)
        able = np.flatnonzero(slots[0])
        needs = np.flatnonzero(self._requests[classes[0]])
        rest = (self._free[np.ix_(able, needs)] - slots[0, able, None] * self._requests[classes[0], needs]) / (
            self._scale[needs]
        )
        able = able[np.lexsort((able, rest.sum(axis=1)))]
        here = slots[0, able]
        suits = np.packbits(self._suitable[classes][:, able], axis=0)
        return _Level(
            able.tolist(),
            here.tolist(),
            [*np.cumsum(here[::-1])[::-1].tolist(), 0],
            np.minimum(slots[1:].sum(axis=1), counts[1:]).tolist(),
            [self._free[node].tobytes() + suits[:, i].tobytes() for i, node in enumerate(able.tolist())],
        )

    def _within_reach(self, k: int, level: _Level, at: int, useful: int, left: int) -> bool:
        """Whether enough could be placed, in all and of each role, if kinds did not compete for room."""
        reach = [min(useful, level.from_here[at]), *level.reach]
        if sum(reach) < left:
            return False
        of_role = [0] * len(self._roles)
        for kind, most in zip(self._kinds[k:], reach, strict=True):
            if kind.role < len(of_role):
                of_role[kind.role] += most
        return all(most >= need for most, need in zip(of_role, self._roles, strict=True))

    def _affordable(self, k: int, left: int) -> bool:
        """Whether the least that `left` members could take is there, adding all nodes up."""
        kinds = self._kinds[k:]
        requests = np.repeat(self._requests[[kind.cls for kind in kinds]], [kind.count for kind in kinds], axis=0)
        least = np.sort(requests, axis=0)[:left].sum(axis=0)
        there = self._free[self._suitable[[kind.cls for kind in kinds]].any(axis=0)].sum(axis=0)
        return bool((least <= there).all())


_Frame = Iterator[tuple[int, "_Frame"]]
