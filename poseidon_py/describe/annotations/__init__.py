"""What pods and their namespaces say by annotations, apart from gangs and queues. Pure."""
