"""`python -m benchmarks.cluster`."""

from benchmarks.cluster.cli import cluster

if __name__ == "__main__":
    cluster(prog_name="poseidon cluster")
