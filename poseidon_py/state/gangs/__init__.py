"""Gangs as Kubernetes users declare them: readers of each convention, and what the engine is told of it.

pod ──► marks ──► conventions (each: marks + objects -> Declaration) ──► book (one Gang message for each group)
                        ▲
                  objects (PodGroups, owners; found by discovery, watched when first needed)

placements of a round ──► units ──► binder          what was bound and what was not ──► units ──► unwinding
"""
