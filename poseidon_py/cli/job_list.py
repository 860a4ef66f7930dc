"""`poseidon jobs`: the jobs that a running scheduler observes, and one of them in detail."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import click

from poseidon_py.cli.ask import answer, in_namespaces, names, question
from poseidon_py.cli.reaching.selection import Selection
from poseidon_py.machines.states import JobState

if TYPE_CHECKING:
    from rich.console import Console

Json = dict[str, Any]

_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_NO_TASKS = "main"
_STATES = [state.value for state in JobState if state is not JobState.NEW]


@click.command("show")
@click.argument("name", metavar="[NAME]", default="", shell_complete=names("jobs"))
@in_namespaces("jobs")
@click.option("--user", metavar="NAME", default="", help="Only jobs of this user.")
@click.option("--queue", metavar="NAME", default="", help="Only jobs of this queue.")
@click.option(
    "--state",
    metavar="STATE",
    type=click.Choice(_STATES, case_sensitive=False),
    help=f"Only jobs in this state: {', '.join(_STATES[:-1])} or {_STATES[-1]}.",
)
@click.option("--output", "-o", type=click.Choice(["table", "json"]), default="table", help="Form of the output.")
@question
def show(
    name: str,
    namespace: str,
    user: str,
    queue: str,
    state: str | None,
    output: str,
    selection: Selection,
    as_json: bool,
) -> None:
    """Show the jobs that the scheduler places: their states, pods, and why they wait.

    With NAME or NAMESPACE/NAME, show the tasks, pods and statistics of that job.
    """
    given = {"name": name, "namespace": namespace, "user": user, "queue": queue, "state": state}
    parameters = urlencode({key: value for key, value in given.items() if value})
    body = answer("/jobs" + (f"?{parameters}" if parameters else ""), selection)
    if as_json or output == "json":
        click.echo(json.dumps(body, indent=2))
        return
    from poseidon_py.util.terminal import new_console

    console = new_console()
    if body["jobs"] or not body["suspended"]:
        print_jobs(body["jobs"], console)
    print_suspended(body["suspended"], console)
    if body["more"]:
        console.print(f"and {body['more']} older jobs; select some by --namespace, --user, --queue or --state")


def print_jobs(jobs: list[Json], console: "Console") -> None:
    """Print a table of jobs; those that have `replicas` one by one."""
    if not jobs:
        console.print("no jobs")
    for job in (each for each in jobs if "replicas" in each):
        _print_job(job, console)
    listed = [each for each in jobs if "replicas" not in each]
    if listed:
        _print_table(listed, console)
        counts: dict[str, int] = {}
        for job in listed:
            counts[job["state"]] = counts.get(job["state"], 0) + 1
        console.print(", ".join(f"{count} {state}" for state, count in sorted(counts.items())), highlight=False)


def print_suspended(workloads: list[Json], console: "Console") -> None:
    """Print a table of the workloads that wait to be resumed, if there are any."""
    from rich.markup import escape

    from poseidon_py.util.terminal import print_rows

    if workloads:
        rows = [(*(escape(each[key]) for key in ("name", "kind", "queue", "why")),) for each in workloads]
        print_rows(console, ("suspended", "kind", "queue", "why"), rows, prose="why")


def _print_table(jobs: list[Json], console: "Console") -> None:
    """Columns that would be empty are left out."""
    from rich.markup import escape

    from poseidon_py.util.terminal import print_rows

    optional = [key for key in ("queue", "reason") if any(job[key] for job in jobs)]
    rows = [
        (
            job["name"],
            job["kind"],
            job["state"],
            pods_text(job["pods"]),
            age(job["age_seconds"]),
            escape(job["user"]),
            *(escape(job[key]) for key in optional),
        )
        for job in jobs
    ]
    header = ("job", "kind", "state", "pods", "age", "user", *optional)
    print_rows(console, header, rows, right=["age"], prose="reason" if "reason" in optional else "")


def pods_text(pods: Mapping[str, int]) -> str:
    """Pods by state, in one line."""
    return ", ".join(f"{count} {state}" for state, count in pods.items())


def age(seconds: float) -> str:
    """A duration with its largest unit."""
    for unit, letter in ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "m")):
        if seconds >= 2 * unit:
            return f"{int(seconds // unit)}{letter}"
    return f"{int(seconds)}s"


def _print_job(job: Json, console: "Console") -> None:
    def line(text: str) -> None:
        console.print(text, highlight=False, markup=False, soft_wrap=True)

    why = f" ({job['reason']})" if job["reason"] else ""
    line(f"{job['name']}: {job['kind']}, {job['state']}{why} since {job['since']}, created {job['created']}")
    queue = f", queue {job['queue']}" if job["queue"] else ""
    ended = f", ended {job['ended']}" if job["ended"] else ""
    line(f"user {job['user']}{queue}{ended}; pods: {pods_text(job['pods'])}")
    if job["eviction_time"] or job["preempted_by"]:
        by = f" for {job['preempted_by']}" if job["preempted_by"] else ""
        line(f"eviction{by} at {job['eviction_time'] or 'an unknown time'}")
    for text in statistics_lines(job["statistics"]):
        line(text)
    if [task["name"] for task in job["tasks"]] != [_NO_TASKS]:
        _print_tasks(job["tasks"], console)
    _print_replicas(job, console)
    if job["more_replicas"]:
        line(f"and {job['more_replicas']} more pods")
    if job["waiting"]:
        line("the oldest of the pods that wait")
    for each in job["waiting"]:
        line(f"  {each['pod']}: {each['why']}")
    if job["more"]:
        line(f"  and {job['more']} more")


def statistics_lines(figures: Json) -> list[str]:
    """The statistics of a job, a queue or a user, in a few lines; what is 0 is left out."""
    waits = figures["waits"]
    counted = [(name, figures[name]) for name in ("retries", "evicted", "preempted", "migrated") if figures[name]]
    lines = []
    if waits["count"]:
        lines.append(
            f"waits of {waits['count']} pods: mean {waits['mean']:g} s, p50 {waits['p50']:g} s, p99 {waits['p99']:g} s"
        )
    resources = ", ".join(f"{name} {amount:g}" for name, amount in figures["resource_seconds"].items())
    if resources:
        lines.append(f"run time {figures['run_seconds']:g} s; resource-seconds: {resources}")
    if figures["lost_seconds"]:
        counted.append(("seconds lost by evictions", figures["lost_seconds"]))
    if counted:
        lines.append(", ".join(f"{name} {value:g}" for name, value in counted))
    return lines


def _print_tasks(tasks: list[Json], console: "Console") -> None:
    from poseidon_py.util.terminal import print_rows

    rows = [
        (task["name"], task["state"], pods_text(task["pods"]), str(task["statistics"]["retries"])) for task in tasks
    ]
    print_rows(console, ("task", "state", "pods", "retries"), rows, right=["retries"])


def _print_replicas(job: Json, console: "Console") -> None:
    from rich.markup import escape

    from poseidon_py.util.terminal import print_rows

    if not job["replicas"]:
        return
    rows = []
    for pod in job["replicas"]:
        code = f"exit code {pod['exit_code']}" if pod["exit_code"] else ""
        reason = ", ".join(filter(None, (pod["reason"], code)))
        times = (pod["started"] or "", pod["ended"] or "")
        rows.append((pod["name"], pod["task"], pod["state"], escape(pod["node"]), *times, escape(reason)))
    print_rows(console, ("pod", "task", "state", "node", "started", "ended", "reason"), rows)
