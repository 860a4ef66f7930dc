"""Min-cost flow: networks, solvers and certificates, and nothing of scheduling."""
