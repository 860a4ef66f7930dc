"""`python -m poseidon_py.cluster`."""

from poseidon_py.cluster.cli import cluster

if __name__ == "__main__":
    cluster(prog_name="poseidon cluster")
