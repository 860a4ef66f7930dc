"""The controllers of a cluster, each driven by changes in the store."""
