"""`kubectl poseidon`, a plug-in of kubectl, and the completion of its arguments.

kubectl runs the program kubectl-poseidon of $PATH with all that follows `kubectl poseidon`, and, to complete that,
kubectl_complete-poseidon. The answer has a value in each line, with a tab and a description if there is one, and in the
last line what the shell does besides.
"""

import os
import sys
from typing import ClassVar

import click
from click.shell_completion import ShellComplete

from poseidon_py.cli.errors import version_option
from poseidon_py.cli.main import LazyGroup

NAME = "kubectl poseidon"
_FILES, _NO_FILES = ":0", ":4"
"""Directives of cobra, kubectl's library: whether the shell completes names of files, too."""


class KubectlGroup(LazyGroup):
    """The commands that ask a scheduler, or have it do something."""

    headings: ClassVar[dict[str, tuple[str, ...]]] = {
        heading: tuple(name for name in names if name != "hooks")
        for heading, names in LazyGroup.headings.items()
        if heading in ("Ask a running scheduler", "Change")
    }
    modules: ClassVar[dict[str, tuple[str, str]]] = {
        name: LazyGroup.modules[name] for names in headings.values() for name in names
    } | {
        "jobs": (
            "poseidon_py.cli.job_list:show",
            "Show the jobs that the scheduler places: their states, pods, and why they wait.",
        )
    }


@click.group(cls=KubectlGroup, context_settings={"help_option_names": ["-h", "--help"]})
@version_option
def kubectl() -> None:
    """Ask the batch scheduler Poseidon: the leader in the cluster of the kubeconfig's context.

    Flags follow the command, as in `kubectl poseidon status --context NAME`.

    Exit codes: 0 ended as requested, 1 failed, 2 wrong usage, 130 interrupted.
    """


def main() -> None:
    """Run the plug-in."""
    try:
        kubectl(prog_name=NAME)
    except KeyboardInterrupt:
        sys.exit(130)


def complete() -> None:
    """Print how the last of the arguments can end, for kubectl."""
    *arguments, incomplete = sys.argv[1:] or [""]
    found = ShellComplete(kubectl, {}, NAME, "").get_completions(arguments, incomplete)
    files = [item for item in found if item.type in ("file", "dir")]
    for item in found:
        if item.type == "plain":
            print(f"{item.value}\t{item.help}" if item.help else item.value)
    print(_FILES if files else _NO_FILES)
    sys.stdout.flush()
    os._exit(0)  # a tunnel that is still being closed must not delay the shell
