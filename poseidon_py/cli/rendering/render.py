"""The output of `poseidon status` and `poseidon explain`."""

from typing import Any

from rich.console import Console

from poseidon_py.kube.quantity import shown
from poseidon_py.util.terminal import print_rows

Json = dict[str, Any]
_REASONS = 10
"""How many of the reasons for which pods wait are printed."""


def gang_line(gang: Json) -> str:
    """The state of a gang, in one line."""
    maximum = f", maximum {gang['maximum']}" if gang["maximum"] else ""
    line = (
        f"gang {gang['name']}: minimum {gang['minimum']}{maximum}, {gang['present']} present, {gang['placed']} placed"
    )
    if gang["succeeded"]:
        line += f", {gang['succeeded']} succeeded"
    if gang["disruption"] == "whole":
        line += ", disrupted only as a whole"
    if gang["missing"]:
        return f"{line}; {gang['missing']} more must be created before it can be placed"
    if gang["lacks"]:
        amounts = ", ".join(f"{shown(name, amount)} {name}" for name, amount in gang["lacks"].items())
        return f"{line}; it starts when {amounts} more are free in the cluster"
    if gang["fits"] is not None:
        lacking = gang["minimum"] - gang["placed"] - gang["succeeded"]
        fits = f"at most {gang['fits']} of the {lacking} members still to be placed"
        line = f"{line}; the last round had capacity for {fits}"
    return f"{line}; {reservation_line(gang)}" if gang["reserves"] else line


def reservation_line(body: Json) -> str:
    """Says that capacity is reserved for a gang or pod, and when it is expected to fit, if known."""
    line = "capacity is reserved for it"
    return f"{line}, expected to suffice at {body['starts']}" if body["starts"] else line


def print_status(body: Json, console: Console) -> None:
    last = body["last_round"]
    role = "leader"
    if not body.get("leading"):
        # a scheduler that lost its lease may still be the last known holder
        other = body.get("leader") if body.get("leader") != body.get("identity") else ""
        role = f"standby, the leader is {other}" if other else "standby, the leader is unknown"
    console.print(
        f"[bold]{body.get('identity', 'poseidon')}[/bold]: {role}; policy {body['policy']}, {body['nodes']} nodes"
    )
    if body.get("server"):
        names = ", ".join(body["scheduler_names"])
        console.print(f"schedules pods of {names} for the API server {body['server']}", highlight=False)
    if body.get("not_ready"):
        console.print(f"[red]not ready[/red]: {body['not_ready']}", highlight=False)
    print_rows(console, ("pods", "count"), [(state, str(count)) for state, count in body["pods"].items()])
    if any(body.get("outcomes", {}).values()):
        ends = ", ".join(f"{count} {how}" for how, count in body["outcomes"].items())
        console.print(f"ended since the flow service started: {ends}", highlight=False)
    resources = []
    for name, amount in body["resources"].items():
        share = amount["used"] / amount["allocatable"] if amount["allocatable"] else 0.0
        resources.append((name, shown(name, amount["allocatable"]), shown(name, amount["used"]), f"{share:.0%}"))
    print_rows(console, ("resource", "allocatable", "used", "share"), resources)
    console.print(
        f"round {body['rounds']}: placed {last['placed']} of {last['pending']}{_steps(last)} "
        f"in {1000 * last['seconds']:.1f} ms, {_waiting(last)}; "
        f"network of {last['vertices']} vertices and {last['arcs']} arcs, "
        f"{last['solves']} {'solve' if last['solves'] == 1 else 'solves'}"
        if body["rounds"]
        else "no round yet"
    )
    print_reasons(body.get("reasons", []), console)
    if left := ", ".join(f"{count} {kind}" for kind, count in body.get("unfinished", {}).items() if count):
        console.print(f"left to do: {left}", highlight=False)
    if last.get("gap"):
        console.print(f"a better packing could have placed at most {last['gap']} more", highlight=False)
    if last.get("fallback"):
        console.print(f"[red]the last round placed pods anywhere they fit[/red]: {last['fallback']}", highlight=False)
    for status, count in last.get("unsolved", {}).items():
        console.print(f"[red]{count} networks of the last round have no solution[/red]: {status}", highlight=False)
    if queues := body.get("queues"):
        print_queues(queues, console)
    if plan := body.get("rebalance"):
        console.print(_plan_line(plan), highlight=False)
    if line := _usage_line(body["usage"]):
        console.print(line, highlight=False)
    for source, problem in body["usage"].get("problems", {}).items():
        console.print(f"  no answer from {source}: {problem}", highlight=False)


def print_reasons(reasons: list[Json], console: Console) -> None:
    """Why pods wait, the most frequent reasons first."""
    lines = [f"{each['pods']:>7}  {each['message']} For example {each['example']}." for each in reasons[:_REASONS]]
    if others := reasons[_REASONS:]:
        lines.append(f"{sum(each['pods'] for each in others):>7}  {len(others)} other reasons")
    for line in lines:
        console.print(line, highlight=False, markup=False, soft_wrap=True)


def print_queues(queues: Json, console: Console) -> None:
    """The kind of queues in force, and what is wrong with objects that declare queues."""
    if queues["queues"] or queues["kind"] != "poseidon" or queues["problems"]:
        count = "1 queue" if queues["queues"] == 1 else f"{queues['queues']} queues"
        console.print(f"{count}; {queues['why']}", highlight=False)
    if writer := queues.get("written_by"):
        console.print(f"  statuses of queues are written by the scheduler of {writer}", highlight=False)
    for problem in queues.get("unsupported", ()):
        console.print(f"  {problem}, so it is not read", highlight=False)
    for name, problems in queues["problems"].items():
        for problem in problems:
            console.print(f"  {name}: {problem}", highlight=False)


def _plan_line(plan: Json) -> str:
    """The plan of moves that is carried out."""
    counts = ", ".join(f"{count} {state}" for state, count in plan["moves"].items() if count)
    return f"a plan of moves {'was stopped' if plan['stopped'] else 'is carried out'} (goal {plan['goal']}): {counts}"


def _steps(last: Json) -> str:
    """By which steps pods were placed."""
    counts = ", ".join(f"{step} {count}" for step, count in last.get("placed_by", {}).items())
    return f" ({counts})" if counts else ""


def _waiting(last: Json) -> str:
    """Counts of the last round: pods without a node, those of them that are nominated, and those that are evicted."""
    line = f"{last['waiting']} waiting"
    if last.get("nominated"):
        line += f", {last['nominated']} of these nominated"
    return line + "".join(f", {last[name]} {name}" for name in ("preempted", "migrated") if last.get(name))


def _usage_line(usage: Json) -> str:
    """The state of usage measurement; empty if it is neither polled nor used."""
    if usage["basis"] == "requests" and not usage["polling"] and not usage["samples"]["taken"]:
        return ""
    last, age = usage["last_round"], usage["newest_age_seconds"]
    pods, nodes = usage["pods"]["measured"], usage["nodes"]["measured"]
    line = f"usage basis {usage['basis']}; {pods} pods and {nodes} nodes measured"
    if age is not None:
        line += f", the newest {age:.0f} s ago"
    if usage["basis"] != "requests":
        line += f"; in the last round {last['missing'] + last['stale']} pods counted with their requests"
    refused = usage["samples"]["refused"]
    return f"{line}; {refused} samples refused" if refused else line


PLACED_BY = {
    "unknown": "another scheduler, or by this one before its flow service started",
    "flow": "flow: a flow of least cost for the pods that waited",
    "cheapest slots": "cheapest slots: few pods of one class, which went where they cost least",
    "greedy": "greedy: after flows had placed what they could, or had found nothing, on the cheapest node with room",
    "required node": "required node: it may have no other node, which had room",
    "nomination": "nomination: the node was kept for it until its victims, or the pod that it replaces, had left",
    "gang search": "gang search: an exact search, since flows could not place the members of its gang together",
    "packing": "packing: packed anew with other pods of its round, of which more fit so",
    "patterns": "patterns: packed anew with other pods of its round on many equal nodes, of which more fit so",
    "lists": "lists: one at a time with other pods of its round, of which more fit so",
    "preemption": "preemption: a decision on victims and moves, which needed none of them to leave first",
    "search": "search: a search beside the rounds, together with its decisions on victims and moves",
}
"""Steps of rounds, as `poseidon explain` names them."""


def verdict_lines(body: Json) -> list[str]:
    """The verdict, the constraints that block by themselves, and what would have to be otherwise."""
    if not body.get("verdict"):
        return []
    lines = [f"verdict: {body['verdict']}; action: {body['action']}"]
    if body["blocking"]:
        smallest = "" if body["blocking_is_smallest"] else " (a smaller set may do)"
        blocking = "; ".join(f"{each['constraint']} ({_nodes(each['nodes'])})" for each in body["blocking"])
        lines.append(f"blocked by{smallest}: {blocking}")
    lines += [f"would fit with {', '.join(each['without'])}: on {_places(each)}" for each in body["remedies"]]
    return lines


def _places(remedy: Json) -> str:
    """The node that lacks least, and how many others fail the same, which may lack more."""
    others = remedy["nodes"] - 1
    if not others:
        return str(remedy["node"])
    if remedy["short"]:
        return f"{remedy['node']}; {_nodes(others)} more lack as much or more"
    return f"{remedy['node']} and {_nodes(others)} like it"


def _nodes(count: int) -> str:
    return "1 node" if count == 1 else f"{count} nodes"


def device_line(each: Json) -> str:
    """What becomes of the devices for a request of a claim, or which a claim has."""
    what = f"claim {each['claim']}" if "claim" in each else f"resource {each['resource']}"
    if "problem" in each:
        return f"{what}: {each['problem']}"
    if "request" not in each:
        return f"{what}: {', '.join(each['devices']) or 'no devices'} ({each['users']} users)"
    counts = ", ".join(f"{count} {reason}" for reason, count in each["devices"].items()) or "there are no devices"
    together = f"; of one pod {', '.join(each['constraints'])}" if each["constraints"] else ""
    return (
        f"{what}, request {each['request']} ({each['count']} of class {each['class']}): {counts}; "
        f"enough are free on {_nodes(each['nodes_with_enough'])}{together}"
    )


def expected_line(expected: Json | None) -> str:
    """When a pod is expected to start, and where; empty: it does not wait."""
    if expected is None:
        return ""
    start = expected["start"]
    if start is None:
        return f"expected start: unknown, {expected['why']}"
    where = f", on {', '.join(expected['nodes'])}" if expected["nodes"] else ""
    return f"expected start: {start['likely']} (between {start['earliest']} and {start['latest']}){where}"


def print_explanation(body: Json, console: Console) -> None:
    where = f" ({body['node']})" if body["node"] else ""
    console.print(f"[bold]{body['pod']}[/bold]: {body['state']}{where}, priority {body['priority']}")
    for text in dict.fromkeys((body["problem"], body["message"])):  # of a queue, both are the same
        if text:
            console.print(f"  {text}", highlight=False)
    for line in verdict_lines(body):
        console.print(f"  {line}", highlight=False, markup=False)
    if step := body.get("placed_by"):
        console.print(f"  placed by {PLACED_BY.get(step, step)}", highlight=False)
    if body.get("queue"):
        console.print(f"  queue {body['queue']}", highlight=False)
    if body.get("gang"):
        console.print(f"  {gang_line(body['gang'])}", highlight=False)
    if body.get("reserves"):
        console.print(f"  {reservation_line(body)}", highlight=False)
    if line := expected_line(body.get("expected")):
        console.print(f"  {line}", highlight=False, markup=False)
    if body["requests"]:
        console.print("  requests: " + ", ".join(f"{k} {shown(k, v)}" for k, v in body["requests"].items()))
    if body["state"] == "waits for a node" and body["fits_now"] is not None:
        alone = " alone" if body.get("gang") else ""
        console.print(f"  nodes on which it{alone} fits now: {body['fits_now']}")
    rows = [
        (near["node"], ", ".join(f"{k} {shown(k, v)}" for k, v in near["lacks"].items()))
        for near in body["nearest"]
        if near["lacks"]
    ]
    if rows:
        print_rows(console, ("node", "lacks"), rows, prose="lacks")
    for each in body.get("devices", ()):
        console.print(f"  {device_line(each)}", highlight=False, markup=False)
    for line in body["story"]:
        console.print(f"  - {line}", highlight=False)
