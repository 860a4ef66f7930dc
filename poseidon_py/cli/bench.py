"""The `poseidon-bench` command: the benchmark suite's own command line, or, without the suite, how to install it."""

import importlib
import sys

from poseidon_py.cli.main import REMEDY
from poseidon_py.util.process.signals import INTERRUPTED


def main() -> None:
    """Run the benchmark suite. Exits with code 2 if the suite, or a module that it needs, is not installed."""
    try:
        try:
            cli = importlib.import_module("benchmarks.__main__").cli
        except ModuleNotFoundError as error:
            sys.exit(_not_installed(error))
        cli(prog_name="poseidon-bench")
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def _not_installed(error: ModuleNotFoundError) -> int:
    print(f"error: there is no module {error.name}; {REMEDY} the benchmark suite", file=sys.stderr)
    return 2


if __name__ == "__main__":
    main()
