"""Several resources at once: which tasks fit on which nodes, and a bound on what could. Independent of scheduling."""
