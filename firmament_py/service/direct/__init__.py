"""Direct calls: the frequent calls of the scheduler service without gRPC."""
