"""HTTP: paths, bodies, lists, watches, faults; implements no rule of Kubernetes itself."""
