"""The benchmark suite that users run: `poseidon-bench`."""
