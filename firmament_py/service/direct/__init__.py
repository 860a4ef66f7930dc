"""What serves calls without gRPC, to a caller on this machine."""
