"""gRPC services: they translate messages to events and results to replies, and decide nothing."""
