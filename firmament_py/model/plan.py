"""A plan of moves of running tasks: plain values."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Move:
    """Task `uid` is evicted from a node, and its successor expected on another; ids of nodes. saves: of the policy's
    costs, less what moving costs; 0 where costs are not the goal."""

    uid: int
    from_id: str
    to_id: str
    saves: int = 0


@dataclass(frozen=True, slots=True)
class Step:
    """Moves that are carried out together, once those of the steps at the positions `after` have ended.

    nominated: (uid, node id) of waiting tasks that fit then. win: position of what it contributes to, -1: it makes room
    for others.
    """

    moves: tuple[Move, ...]
    after: tuple[int, ...] = ()
    nominated: tuple[tuple[int, str], ...] = ()
    win: int = -1


@dataclass(frozen=True, slots=True)
class Win:
    """`count` more tasks fit on the node of this id, empty: on several; or it is empty then. uids: of these tasks if
    they wait."""

    node_id: str
    count: int = 1
    uids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class BudgetUse:
    """How many moves a disruption budget counts, and how many evictions it permits now."""

    name: str
    moves: int
    allowed: int


@dataclass(frozen=True, slots=True)
class MovePlan:
    """Steps in order. before, after: what is to be improved, without and with the moves, 0 if that is a cost; bound: no
    plan of the same limits reaches more, None: not known. Tasks that run, may move, and may not because of disruption
    budgets alone."""

    steps: tuple[Step, ...]
    wins: tuple[Win, ...] = ()
    before: int = 0
    after: int = 0
    bound: int | None = None
    running: int = 0
    movable: int = 0
    guarded: int = 0
    budgets: tuple[BudgetUse, ...] = ()
