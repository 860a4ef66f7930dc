"""Suspends workloads that leave as a whole, and resumes suspended ones when their turn comes."""
