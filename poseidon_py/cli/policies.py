"""The cost policies of the flow service, which is run as a process, not imported."""

import json
import subprocess
import sys
from typing import Any

import click

from poseidon_py.cli.errors import fail
from poseidon_py.config.settings import Settings


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
    arguments = [argument for option in settings.policy_option for argument in ("--policy-option", option)]
    done = _firmament("check-policy", "--load-only", *arguments, *([settings.policy] if settings.policy else []))
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["the flow service rejected the policy without an error message"]
        error = next((line.removeprefix("Error: ") for line in lines if line.startswith("Error: ")), lines[-1])
        fail(error, 2)


def _list_policies() -> list[dict[str, Any]]:
    done = _firmament("policies", "--json")
    if done.returncode:
        fail(f"cannot list the policies of the flow service: {done.stderr.strip().splitlines()[-1:]}", 1)
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def _firmament(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "firmament_py", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)
