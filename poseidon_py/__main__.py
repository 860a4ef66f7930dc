"""The `poseidon` command, also as `python -m poseidon_py`. Little is imported here, for what Ctrl-C interrupts then."""

import sys


def main() -> None:
    """Run the command. Ctrl-C ends it without a traceback and with exit code 130, also while modules are loaded."""
    try:
        from poseidon_py.cli.main import cli

        cli(prog_name="poseidon")
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        import signal

        signal.signal(signal.SIGINT, signal.SIG_DFL)  # nothing is left to clean up


if __name__ == "__main__":
    main()
