"""Clusters whose free capacity lies in pieces, plans of moves, exact optima, and the rules of other systems, retold."""
