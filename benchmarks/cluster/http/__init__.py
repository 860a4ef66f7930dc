"""Requests in, answers out: paths, bodies, lists, watches, faults; decides no rule of Kubernetes."""
