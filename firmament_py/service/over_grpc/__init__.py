"""What serves calls over gRPC: the only part of the engine that imports it."""
