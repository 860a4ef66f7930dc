"""The `poseidon` command: the group, and the commands that are loaded only when they are used.

Exit codes: 0 ended as requested, 1 failed while running or a dependency is unreachable, 2 wrong usage or configuration.
"""

import importlib
from typing import ClassVar

import click

from poseidon_py.cli.errors import Group, version_option

REMEDY = "in a checkout of the source, `make install` or `pip install '.[benchmarks]'` adds"
"""How to get what the extra `benchmarks` has; no package index has it."""
_ANY_ARGUMENTS = {"ignore_unknown_options": True, "allow_extra_args": True}


class LazyGroup(Group):
    """Imports the module of a command on use: each of them needs only its own libraries, and an installation of the
    scheduler alone has no benchmark suite."""

    modules: ClassVar[dict[str, str]] = {
        "cluster": "benchmarks.cluster.cli",
        "demo": "benchmarks.demo.cli",
        "explain": "poseidon_py.cli.ask",
        "fits": "poseidon_py.cli.fits",
        "gangs": "poseidon_py.cli.gangs",
        "hooks": "poseidon_py.cli.hooks",
        "jobs": "poseidon_py.cli.jobs",
        "policies": "poseidon_py.cli.policies",
        "queues": "poseidon_py.cli.queues",
        "rebalance": "poseidon_py.cli.rebalance",
        "run": "poseidon_py.cli.run",
        "status": "poseidon_py.cli.ask",
    }
    """Command -> the module that has it under that name."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.modules)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.modules:
            return None
        try:
            found = getattr(importlib.import_module(self.modules[cmd_name]), cmd_name)
        except ModuleNotFoundError as error:
            if not self.modules[cmd_name].startswith("benchmarks"):
                raise
            return _not_installed(cmd_name, error)
        assert isinstance(found, click.Command)
        return found


def _not_installed(name: str, error: ModuleNotFoundError) -> click.Command:
    """Takes the place of a command whose package, or a dependency of it, is not installed."""

    @click.command(
        name, short_help="(needs the extra `benchmarks`)", add_help_option=False, context_settings=_ANY_ARGUMENTS
    )
    def command() -> None:
        raise click.ClickException(
            f"{name} is not installed here: there is no module {error.name}; "
            f"{REMEDY} the synthetic cluster and its dependencies"
        )

    return command


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@version_option
def cli() -> None:
    """A min-cost-flow batch scheduler for Kubernetes.

    Exit codes: 0 ended as requested, 1 failed while running, 2 wrong usage or configuration.
    """
