"""The `poseidon` command: the group, and the commands that are loaded only when they are used.

Exit codes: 0 ended as requested, 1 failed while running or a dependency is unreachable, 2 wrong usage or configuration,
130 interrupted.
"""

import importlib
import importlib.util
from typing import ClassVar

import click

from poseidon_py.cli.errors import Group, version_option

REMEDY = "in a checkout of the source, `make install` or `pip install '.[benchmarks]'` adds"
"""How to get what the extra `benchmarks` has; no package index has it."""
_NEEDS_EXTRA = "(needs the extra `benchmarks`)"
_OF_BENCHMARKS = ("benchmarks", "jsonpatch", "orjson")
_ANY_ARGUMENTS = {"ignore_unknown_options": True, "allow_extra_args": True}


class LazyGroup(Group):
    """Imports the module of a command on use: each of them needs only its own libraries, and an installation of the
    scheduler alone has no benchmark suite."""

    modules: ClassVar[dict[str, tuple[str, str]]] = {
        "cluster": (
            "benchmarks.cluster.cli",
            "Run a synthetic cluster that speaks the Kubernetes HTTP API, until interrupted.",
        ),
        "completion": ("poseidon_py.cli.shell.completion", "Print what makes a shell complete commands and flags."),
        "config": ("poseidon_py.cli.config", "Check configuration files of `poseidon run`, and write them."),
        "demo": (
            "benchmarks.demo.cli",
            "Schedule a mixed workload on a synthetic cluster and check the outcome.",
        ),
        "devices": (
            "poseidon_py.cli.listing.devices",
            "Show the devices that drivers publish: how many of each class are free.",
        ),
        "explain": ("poseidon_py.cli.ask", "Show why a pod is pending, and what would let it be placed."),
        "fits": (
            "poseidon_py.cli.fitting.fits",
            "Show whether the pods of a manifest would fit now, and on which nodes.",
        ),
        "gangs": ("poseidon_py.cli.gangs", "Show the gangs: how many of their pods there are, and why they wait."),
        "hooks": ("poseidon_py.cli.hooks", "Show the deliveries of hooks that wait, and dead letters."),
        "jobs": ("poseidon_py.cli.jobs", "Show the jobs that a running scheduler observes, or the job NAME."),
        "network": ("poseidon_py.cli.network", "Show the flow network of a round."),
        "policies": ("poseidon_py.cli.policies", "List the values of `run --policy`, with their options."),
        "queue": (
            "poseidon_py.cli.listing.queue",
            "Show the gangs and pods that wait, and when they are expected to start.",
        ),
        "queues": (
            "poseidon_py.cli.queues",
            "Show the queues: what they use, what they may use, and what is wrong with them.",
        ),
        "rebalance": ("poseidon_py.cli.rebalance", "Plan moves of running pods, and carry them out."),
        "run": ("poseidon_py.cli.run", "Run the scheduler until SIGTERM or SIGINT."),
        "status": ("poseidon_py.cli.ask", "Show the scheduler's view of the cluster."),
        "top": ("poseidon_py.cli.top", "Show pods, rounds, queues and why pods wait, until interrupted."),
        "what-if": (
            "poseidon_py.cli.fitting.what_if:what_if",
            "Show whether the pods of a manifest would fit: now, later, or never.",
        ),
    }
    """Command -> the module that has it, under that name or after a colon, and how its help begins: so the list of
    commands needs none of their libraries."""
    headings: ClassVar[dict[str, tuple[str, ...]]] = {
        "Ask a running scheduler": (
            "devices",
            "explain",
            "fits",
            "gangs",
            "jobs",
            "network",
            "queue",
            "queues",
            "status",
            "top",
            "what-if",
        ),
        "Change": ("hooks", "rebalance"),
        "Run": ("cluster", "demo", "run"),
        "Set up": ("completion", "config", "policies"),
    }
    """The commands under each heading of the help, which has the shortest list first."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.modules)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.modules:
            return None
        module, _, name = self.modules[cmd_name][0].partition(":")
        try:
            found = getattr(importlib.import_module(module), name or cmd_name)
        except ModuleNotFoundError as error:
            if not module.startswith("benchmarks"):
                raise
            return _not_installed(cmd_name, error)
        assert isinstance(found, click.Command)
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The lists of commands in the help."""
        installed = all(importlib.util.find_spec(name) for name in _OF_BENCHMARKS)
        for heading, names in sorted(self.headings.items(), key=lambda each: len(each[1])):
            with formatter.section(heading):
                lines = []
                for name in names:
                    module, summary = self.modules[name]
                    available = installed or not module.startswith("benchmarks")
                    lines.append((name, summary if available else _NEEDS_EXTRA))
                formatter.write_dl(lines, col_max=12)


def _not_installed(name: str, error: ModuleNotFoundError) -> click.Command:
    """Takes the place of a command whose package, or a dependency of it, is not installed."""

    @click.command(name, short_help=_NEEDS_EXTRA, add_help_option=False, context_settings=_ANY_ARGUMENTS)
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

    Exit codes: 0 ended as requested, 1 failed while running, 2 wrong usage or configuration, 130 interrupted.
    """
