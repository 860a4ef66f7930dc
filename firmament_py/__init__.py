"""The flow-graph service: tasks, jobs, resources and flow, and nothing that knows Kubernetes."""
