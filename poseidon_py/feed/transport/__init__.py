"""What carries calls to a flow service: `direct` on this machine, or `over_grpc`, which alone imports gRPC."""
