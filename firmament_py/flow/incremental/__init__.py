"""Incremental min-cost flow: networks that persist between rounds are repaired to the new optimum and certified."""
