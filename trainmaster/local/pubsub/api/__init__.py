"""The gRPC methods."""
