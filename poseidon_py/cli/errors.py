"""How the commands report an error: one line on standard error, and an exit code."""

import sys
from typing import NoReturn

import click


def fail(message: str, code: int) -> NoReturn:
    """Print the message and exit with the code."""
    click.echo(f"error: {message}", err=True)
    sys.exit(code)
