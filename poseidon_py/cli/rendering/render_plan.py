"""The output of `poseidon rebalance`: a plan of moves."""

from collections.abc import Mapping

from rich.console import Console
from rich.markup import escape

from poseidon_py.app.move_plan import Plan, purposes
from poseidon_py.util.terminal import print_rows

OPT_IN = (
    'no running pod may be moved: annotate pods, or label namespaces, with poseidon.io/movable: "true"; '
    "pods move once they have run for --migrate-after"
)
_GUARDED = "all pods that may move are guarded by disruption budgets that permit no eviction now"


def print_plan(plan: Plan, console: Console) -> None:
    """The plan: what it wins, its moves in order, and what limits it."""
    console.print(heading(plan), highlight=False, markup=False)
    if plan.steps:
        _print_moves(plan, console)
    if plan.budgets:
        rows = [
            (use.name, str(use.moves), str(use.allowed) + (": moves wait for it" if use.moves > use.allowed else ""))
            for use in plan.budgets
        ]
        print_rows(console, ("budget", "moves", "allowed now"), rows)
    if plan.running:
        guarded = f", {plan.guarded} more once disruption budgets permit it" if plan.guarded else ""
        console.print(
            f"{plan.running} {_pods(plan.running)} run; {plan.movable} may move{guarded}", highlight=False, markup=False
        )
    if plan.running and not plan.movable:
        console.print(_GUARDED if plan.guarded else OPT_IN, highlight=False, markup=False)


def _print_moves(plan: Plan, console: Console) -> None:
    after = {step.step: f"after {', '.join(map(str, step.after))}" if step.after else "" for step in plan.steps}
    header = ["step", "pod", "from", "to", "why", "waits"]
    rows = [
        [str(step.step), *map(escape, (move.pod, move.source, move.target, why)), after[step.step]]
        for step, move, why in purposes(plan)
    ]
    if not any(after.values()):
        header, rows = header[:-1], [row[:-1] for row in rows]
    print_rows(console, header, rows, right=("step",), prose="why")


def heading(plan: Plan) -> str:
    """What the plan wins, in one sentence."""
    count = sum(1 for _ in plan.moves)
    if not count:
        return plan.problem or _nothing(plan)
    moves = f"{count} {'move' if count == 1 else 'moves'}"
    if plan.goal in ("spread", "policy"):
        costs = "the costs of load-spreading" if plan.goal == "spread" else "the policy's costs"
        return f"{moves}: {costs} fall by {sum(move.saves for move in plan.moves):,}"
    won, change = abs(plan.after - plan.before), f"({plan.before} -> {plan.after})"
    if plan.goal == "place":
        won_text = f"{won} more {_pods(won)} {_verb(won, 'fits', 'fit')} {change[:-1]} wait)"
    elif plan.shape:
        won_text = f"{plan.shape} fits {won} {_verb(won, 'time', 'times')} more {change}"
    else:
        won_text = f"{won} more {_verb(won, 'node is', 'nodes are')} empty {change}"
    bound = _bound(plan)
    return f"{moves}: {won_text}; {bound}" if bound else f"{moves}: {won_text}"


def _bound(plan: Plan) -> str:
    """Empty: nothing is known."""
    if plan.bound is None or not plan.limit:
        return ""
    limit = f"no plan of {plan.limit} {_verb(plan.limit, 'move', 'moves')}"
    if plan.goal == "place":
        return f"{limit} lets fewer than {plan.bound} wait"
    if plan.shape:
        return f"{limit} lets it fit more than {plan.bound} {_verb(plan.bound, 'time', 'times')}"
    return f"{limit} empties more than {plan.bound}"


def _nothing(plan: Plan) -> str:
    """Why there are no moves."""
    if plan.goal == "place" and not plan.before:
        return "no moves: no pending pod waits for capacity"
    bound = _bound(plan)
    return f"no moves help; {bound}" if bound else "no moves help"


def summary(states: Mapping[str, tuple[str, str]], pods: Mapping[str, str]) -> list[str]:
    """What has become of the moves: the numbers by state, then each that is not done.

    `states`: state and reason by UID; `pods`: names by UID.
    """
    counts: dict[str, int] = {}
    for state, _ in states.values():
        counts[state] = counts.get(state, 0) + 1
    lines = [", ".join(f"{count} {state}" for state, count in counts.items())]
    for uid, (state, why) in states.items():
        if state != "done":
            lines.append(f"  {pods[uid]}: {state}{', ' if why else ''}{why}")
    return lines


def _pods(count: int) -> str:
    return _verb(count, "pod", "pods")


def _verb(count: int, one: str, several: str) -> str:
    return one if count == 1 else several
