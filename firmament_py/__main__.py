"""The `firmament` command, also as `python -m firmament_py`. Little is imported here, for what Ctrl-C interrupts."""

import sys


def main() -> None:
    """Run the command. Ctrl-C ends it without a traceback and with exit code 130, also while modules are loaded."""
    try:
        from firmament_py.cli.main import cli

        cli(prog_name="firmament")
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
