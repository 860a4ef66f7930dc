"""`python -m firmament_py` is the `firmament` command."""

from firmament_py.cli.main import cli

if __name__ == "__main__":
    cli(prog_name="firmament")
