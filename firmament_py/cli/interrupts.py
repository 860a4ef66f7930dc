"""How Ctrl-C ends the command."""

from typing import Any

import click

INTERRUPTED = 130
"""Exit code, as shells have it: 128 and the signal's number."""


class Interruptible(click.Group):
    """A group of commands that an interrupt ends with exit code 130, also at a question, as the end of input does."""

    def invoke(self, ctx: click.Context) -> Any:
        """click itself would print `Aborted!` and exit with 1."""
        try:
            return super().invoke(ctx)
        except (KeyboardInterrupt, EOFError, click.Abort):
            ctx.exit(INTERRUPTED)
