"""Min-cost flow: networks, solvers and certificates, independent of scheduling."""
