"""`python -m poseidon_py` is the `poseidon` command."""

from poseidon_py.cli.main import cli

if __name__ == "__main__":
    cli(prog_name="poseidon")
