"""How the commands report an error: one line on standard error, and an exit code."""

import difflib
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import click

from poseidon_py.util.process.signals import INTERRUPTED


def fail(message: str, code: int) -> NoReturn:
    """Print the message and exit with the code."""
    click.echo(f"error: {message}", err=True)
    sys.exit(code)


def fail_with_all(problems: Sequence[str], heading: str, code: int) -> NoReturn:
    """Print the problem, or the heading and all problems, a line each, and exit with the code."""
    fail("\n".join([heading, *problems] if len(problems) > 1 else problems), code)


def version_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds --version. Unlike click's own option it looks the version up only when it is asked for."""

    def show(context: click.Context, _: click.Parameter, asked: bool) -> None:
        if asked and not context.resilient_parsing:
            from poseidon_py import __version__

            click.echo(f"{context.find_root().info_name}, version {__version__}")
            context.exit()

    option = click.option(
        "--version", is_flag=True, is_eager=True, expose_value=False, callback=show, help="Show the version and exit."
    )
    return option(command)


class UsageProblem(click.UsageError):
    """A flag has a value that cannot be used; the message says which and why. Exit code 2."""


class Group(click.Group):
    """A group of commands that an interrupt ends with exit code 130, also at a question, as the end of input does; and
    that knows what a mistyped command was to be."""

    def invoke(self, ctx: click.Context) -> Any:
        """click itself would print `Aborted!` and exit with 1."""
        try:
            return super().invoke(ctx)
        except (KeyboardInterrupt, EOFError, click.Abort):
            ctx.exit(INTERRUPTED)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if not name.startswith("-") and not ctx.resilient_parsing and self.get_command(ctx, name) is None:
            close = difflib.get_close_matches(name, self.list_commands(ctx))
            meant = f"; did you mean {' or '.join(close)}?" if close else f"; `{ctx.command_path} --help` lists them"
            ctx.fail(f"there is no command {name!r}{meant}")
        return super().resolve_command(ctx, args)
