"""Clusters whose free capacity lies in pieces, plans of moves, exact optima, and models of other systems' rules."""
