"""gRPC: messages in, events to the engine, replies out; decides nothing."""
