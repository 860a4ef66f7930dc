"""Makes a tree of queues: what has no place in one is left out, with the reason.

A queue that is left out takes no tasks, nor do those below it; all others go on.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from poseidon_py.describe.queues.model import Flavor, Queue, Rules, Tree

_SHOWN = 6
"""Queues of a cycle that its message names."""


def make_tree(queues: Iterable[Queue], flavors: Iterable[Flavor], rules: Rules, parent_field: str) -> Tree:
    """The tree. `parent_field`: the path of the field that names the parent, for messages.

    A stopped parent stops all queues below it.
    """
    by_key = {queue.key: queue for queue in queues}
    problems: dict[str, str] = {}
    finished: dict[str, Queue] = {}
    for key in by_key:
        _finish(key, by_key, finished, problems, parent_field)
    used = {quota.flavor for queue in finished.values() for quota in queue.quotas}
    return Tree(tuple(finished.values()), tuple(flavor for flavor in flavors if flavor.name in used), rules, problems)


def _finish(
    key: str, queues: Mapping[str, Queue], finished: dict[str, Queue], problems: dict[str, str], parent_field: str
) -> None:
    """Puts a queue and its ancestors into `finished`, or into `problems`."""
    path: dict[str, None] = {}
    while key and key in queues and key not in finished and key not in problems and key not in path:
        path[key] = None
        key = queues[key].parent
    if key in path:
        cycle = list(path)[list(path).index(key) :]
        first = cycle.index(min(cycle))  # whichever queue the search began with
        names = [queues[each].name for each in (*cycle[first:], *cycle[:first])]
        shown = " > ".join([*names[:_SHOWN], *(["..."] if len(names) > _SHOWN else []), names[0]])
        for each in cycle:
            problems[each] = f"{parent_field}: is part of the cycle {shown}; change one of the parents"
    for each in reversed(path):
        if each in problems:
            continue
        queue = queues[each]
        if queue.parent and queue.parent not in queues:
            name = queue.parent.partition("/")[2]
            problems[each] = f"{parent_field}: queue {name} does not exist; create it or name another"
        elif queue.parent in problems:
            problems[each] = f"{parent_field}: queue {queues[queue.parent].name} is not used; see its own problem"
        else:
            above = finished.get(queue.parent)
            finished[each] = queue if above is None or above.stop <= queue.stop else replace(queue, stop=above.stop)
