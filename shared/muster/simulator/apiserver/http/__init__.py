"""Requests and responses of the API server: HTTP, paths, bodies in protobuf and YAML."""
