"""How the kubelet finds the plugin and calls it: sockets, registration, gRPC services, probes."""
