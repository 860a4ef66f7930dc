"""Gangs as Kubernetes users declare them: a reader for each convention, merged into one Gang message for each group.

pod ──► hints ──► conventions (each: hints + objects -> Declaration) ──► registry (one Gang message for each group)
                        ▲
                  objects (PodGroups, owners; found by API discovery, watched once they are needed)
"""
