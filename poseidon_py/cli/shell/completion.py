"""`poseidon completion`: the script by which a shell completes commands, flags, and names of objects."""

import click
from click.shell_completion import get_completion_class

SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_POSEIDON_COMPLETE"


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print what makes a shell complete commands and flags.

    Names of gangs, jobs and queues are completed as well, by the scheduler that the flags select.

    \b
    bash:  eval "$(poseidon completion bash)"                  in ~/.bashrc
    zsh:   eval "$(poseidon completion zsh)"                   in ~/.zshrc
    fish:  poseidon completion fish > ~/.config/fish/completions/poseidon.fish
    """
    root = context.find_root()
    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(root.command, {}, root.info_name or "poseidon", VARIABLE).source())
