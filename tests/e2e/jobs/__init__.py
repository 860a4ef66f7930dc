"""Volcano's Jobs and `poseidon jobs run`, on both servers."""
