"""The cost policies of the flow service, which is run as a process, not imported."""

import json
import shlex
import subprocess
from typing import Any

import click

from poseidon_py.cli.errors import fail
from poseidon_py.config.settings import Settings
from poseidon_py.util.process.child_process import PYTHON, how_it_ended


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def policies(as_json: bool) -> None:
    """List the values of `run --policy`, with their options."""
    found = _list_policies()
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    width = max((len(policy["name"]) for policy in found), default=0)
    for policy in found:
        click.echo(f"{policy['name']:<{width}}  {policy['summary'] or policy['error']}")
        for option, kind in policy["options"].items():
            click.echo(f"{'':<{width}}    --policy-option {option}={kind}")


def check_policy(settings: Settings) -> None:
    """Exit with an error if the flow service rejects the policy or its options; called before anything is started."""
    problem = problem_of_policy(settings)
    if problem:
        fail(problem, 2)


def problem_of_policy(settings: Settings) -> str:
    """Why the flow service rejects the policy or its options; empty: it does not, or none is given."""
    if not settings.policy and not settings.policy_option:
        return ""
    arguments = [argument for option in settings.policy_option for argument in ("--policy-option", option)]
    done = _firmament("check-policy", "--load-only", *arguments, *([settings.policy] if settings.policy else []))
    return _error(done) if done.returncode else ""


def _list_policies() -> list[dict[str, Any]]:
    done = _firmament("policies", "--json")
    if done.returncode:
        fail(_error(done), 1)
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def _error(done: subprocess.CompletedProcess[str]) -> str:
    """The error message of the flow service's command, or, if it has failed without one, how to see why."""
    for line in done.stderr.splitlines():
        if line.startswith("Error: "):
            return line.removeprefix("Error: ")
    command = shlex.join(["firmament", *done.args[done.args.index("firmament_py") + 1 :]])
    return f"the flow service's command {how_it_ended(done.returncode)} without an error message; run `{command}`"


def _firmament(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [*PYTHON, "-m", "firmament_py", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)
