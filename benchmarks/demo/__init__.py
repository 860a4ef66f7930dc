"""`poseidon demo`: schedules a mixed workload on a synthetic cluster and checks the outcome."""
