"""The functions of Kubernetes' CEL environment, each declared with its signature, cost and implementation."""
