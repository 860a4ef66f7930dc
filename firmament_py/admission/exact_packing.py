"""Can so many members of a gang be placed on what nodes have left? An exhaustive search.

For gangs whose members are of several classes, where a flow decides too little: which members to choose, and how they
share nodes, is a packing problem. Members of one class and role are interchangeable, and so are nodes with the same
free amounts that suit the same classes; beyond that the search is exhaustive: class by class, the largest first, each
on the nodes that it fills best, as many as fit first. So its first path is what a good greedy rule would do. It gives
up after a number of steps.
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
    """The result of a search. places: for each kind the nodes (K,) of the members that were chosen, None: no way was
    found. steps: how many the search took. proven: whether None means that there is no way."""

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
    max_steps: int,
) -> Packing:
    """Searches for places of `lacking` members, of each role at least as many as it lacks.

    free (N, R) is what nodes have left, requests (C, R) what one member of each class takes, suitable (C, N) where it
    may be. lacking is at least the sum of lacking_of_role.
    """
    search = _Search(free, requests, suitable, kinds, list(lacking_of_role))
    return search.run(lacking, max_steps)


@dataclass(frozen=True, slots=True)
class _Options:
    """What a kind can choose from: nodes that have slots for it, the best first; slots of each; the sum of the slots
    from each on; reach: how many members of each later kind could be placed at most; signature: equal for nodes that
    are interchangeable."""

    nodes: list[int]
    slots: list[int]
    from_here: list[int]
    reach: list[int]
    signature: list[bytes]


_NO_OPTIONS = _Options([], [], [0], [], [])


@dataclass(slots=True)
class _Frame:
    """One step on the current path of the search: kind k has `count` members to choose from, `left` members are lacked
    in all. choices: positions in options.nodes and how many members to put there, 0: go on with the next kind. state:
    of the first frame of a kind, to note that nothing came of it."""

    k: int
    options: _Options
    count: int
    left: int
    choices: Iterator[tuple[int, int]]
    state: tuple[object, ...] | None = None
    chosen: tuple[int, int] | None = None  # node and number of members that are put there now
    for_role: int = 0  # how many of these its role lacked


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
        self._failed: set[tuple[object, ...]] = set()

    def run(self, lacking: int, max_steps: int) -> Packing:
        """A depth-first search over a stack of frames, each with the choice that is tried now."""
        first = self._first_frame(0, lacking)
        stack, steps = [first] if first is not None else [], 0
        while stack:
            frame = stack[-1]
            self._undo(frame)
            choice = next(frame.choices, None)
            if choice is None:
                stack.pop()
                if frame.state is not None:
                    self._failed.add(frame.state)
                continue
            at, number = choice
            if number:
                self._choose(frame, frame.options.nodes[at], number)
            steps += 1
            left = frame.left - number
            if left == 0:
                return Packing(self._places(stack), steps, True)
            if steps >= max_steps:
                return Packing(None, steps, False)
            if number:
                stack.append(self._frame(frame.k, frame.options, at + 1, frame.count - number, left))
            elif (deeper := self._first_frame(frame.k + 1, left)) is not None:
                stack.append(deeper)
        return Packing(None, steps, True)

    def _places(self, stack: list[_Frame]) -> list[I64]:
        """For each kind, in the order of the caller, the nodes of the members that the frames have chosen."""
        chosen: list[list[int]] = [[] for _ in self._kinds]
        for frame in stack:
            if frame.chosen is not None:
                node, number = frame.chosen
                chosen[self._order[frame.k]] += [node] * number
        return [np.array(nodes, np.int64) for nodes in chosen]

    def _first_frame(self, k: int, left: int) -> _Frame | None:
        """Kind k begins, `left` members are still lacked; None: it has failed before in the same state."""
        if k == len(self._kinds):
            return None
        from hashlib import blake2b  # loads OpenSSL: 4 MB that few engines need

        state = k, left, tuple(self._roles), blake2b(self._free.data, digest_size=16).digest()  # amounts are many
        if state in self._failed:
            return None
        if not self._affordable(k, left):
            return _Frame(k, _NO_OPTIONS, 0, left, iter(()), state)
        frame = self._frame(k, self._options(k), 0, self._kinds[k].count, left)
        frame.state = state
        return frame

    def _frame(self, k: int, options: _Options, at: int, count: int, left: int) -> _Frame:
        """Kind k goes on from position `at` of its nodes."""
        return _Frame(k, options, count, left, self._choices(k, options, at, count, left))

    def _choices(self, k: int, options: _Options, at: int, count: int, left: int) -> Iterator[tuple[int, int]]:
        kind, roles = self._kinds[k], self._roles
        # some of what is lacked is reserved for roles that are short
        spare = left - sum(roles)
        useful = min(count, spare + roles[kind.role]) if kind.role < len(roles) else min(count, spare)
        if not self._within_reach(k, options, at, useful, left):
            return
        seen: set[bytes] = set()
        for p in range(at, len(options.nodes)):
            if not self._within_reach(k, options, p, useful, left):
                break
            if options.signature[p] in seen:
                continue  # an interchangeable node has been tried
            seen.add(options.signature[p])
            for number in range(min(options.slots[p], useful), 0, -1):
                yield p, number
        yield len(options.nodes), 0

    def _choose(self, frame: _Frame, node: int, number: int) -> None:
        kind, roles = self._kinds[frame.k], self._roles
        frame.chosen = (node, number)
        frame.for_role = min(number, roles[kind.role]) if kind.role < len(roles) else 0
        if frame.for_role:
            roles[kind.role] -= frame.for_role
        self._free[node] -= number * self._requests[kind.cls]

    def _undo(self, frame: _Frame) -> None:
        if frame.chosen is None:
            return
        kind, (node, number) = self._kinds[frame.k], frame.chosen
        if frame.for_role:
            self._roles[kind.role] += frame.for_role
        self._free[node] += number * self._requests[kind.cls]
        frame.chosen = None

    def _options(self, k: int) -> _Options:
        classes = [kind.cls for kind in self._kinds[k:]]
        counts = np.array([kind.count for kind in self._kinds[k:]], np.int64)
        slots = task_slots(self._free, self._requests[classes], self._suitable[classes], counts)
        able = np.flatnonzero(slots[0])
        needs = np.flatnonzero(self._requests[classes[0]])
        leftover = (self._free[np.ix_(able, needs)] - slots[0, able, None] * self._requests[classes[0], needs]) / (
            self._scale[needs]
        )
        able = able[np.lexsort((able, leftover.sum(axis=1)))]
        here = slots[0, able]
        suits = np.packbits(self._suitable[classes][:, able], axis=0)
        return _Options(
            able.tolist(),
            here.tolist(),
            [*np.cumsum(here[::-1])[::-1].tolist(), 0],
            np.minimum(slots[1:].sum(axis=1), counts[1:]).tolist(),
            [self._free[node].tobytes() + suits[:, i].tobytes() for i, node in enumerate(able.tolist())],
        )

    def _within_reach(self, k: int, options: _Options, at: int, useful: int, left: int) -> bool:
        """Whether enough members could be placed, in all and of each role, if kinds did not compete for capacity."""
        reach = [min(useful, options.from_here[at]), *options.reach]
        if sum(reach) < left:
            return False
        of_role = [0] * len(self._roles)
        for kind, count in zip(self._kinds[k:], reach, strict=True):
            if kind.role < len(of_role):
                of_role[kind.role] += count
        return all(count >= need for count, need in zip(of_role, self._roles, strict=True))

    def _affordable(self, k: int, left: int) -> bool:
        """Whether the least that `left` members could request is free, summed over all nodes."""
        kinds = self._kinds[k:]
        requests = np.repeat(self._requests[[kind.cls for kind in kinds]], [kind.count for kind in kinds], axis=0)
        least = np.sort(requests, axis=0)[:left].sum(axis=0)
        free = self._free[self._suitable[[kind.cls for kind in kinds]].any(axis=0)].sum(axis=0)
        return bool((least <= free).all())
