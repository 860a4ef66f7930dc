"""The `poseidon` command: the group, and the commands that are loaded only when they are used.

Exit codes: 0 ended as requested, 1 failed while running or a dependency is unreachable, 2 wrong usage or configuration.
"""

import importlib
from typing import ClassVar

import click

from poseidon_py import __version__
from poseidon_py.cli.ask import explain, status
from poseidon_py.cli.policies import policies
from poseidon_py.cli.run import run

EXTRA = "poseidon-firmament[benchmarks]"
_ANY_ARGUMENTS = {"ignore_unknown_options": True, "allow_extra_args": True}


class LazyGroup(click.Group):
    """Imports the commands of the benchmark suite on use: an installation of the scheduler alone does not have them."""

    lazy: ClassVar[dict[str, tuple[str, str]]] = {
        "cluster": ("benchmarks.cluster.cli", "cluster"),
        "demo": ("benchmarks.demo.cli", "demo"),
    }
    """Name -> module and attribute."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*super().list_commands(ctx), *self.lazy])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.lazy:
            return super().get_command(ctx, cmd_name)
        module, name = self.lazy[cmd_name]
        try:
            found = getattr(importlib.import_module(module), name)
        except ModuleNotFoundError as error:
            return _not_installed(cmd_name, error)
        assert isinstance(found, click.Command)
        return found


def _not_installed(name: str, error: ModuleNotFoundError) -> click.Command:
    """Takes the place of a command whose package, or a dependency of it, is not installed."""

    @click.command(name, short_help=f"(needs {EXTRA})", add_help_option=False, context_settings=_ANY_ARGUMENTS)
    def command() -> None:
        raise click.ClickException(
            f"{name} is not installed here: there is no module {error.name}; "
            f"pip install '{EXTRA}' adds the synthetic cluster and its dependencies"
        )

    return command


@click.group(cls=LazyGroup)
@click.version_option(__version__, prog_name="poseidon")
def cli() -> None:
    """A min-cost-flow batch scheduler for Kubernetes.

    Exit codes: 0 ended as requested, 1 failed while running, 2 wrong usage or configuration.
    """


for _command in (run, status, explain, policies):
    cli.add_command(_command)
