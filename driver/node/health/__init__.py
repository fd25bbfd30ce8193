"""Are the node's cards well? From what hardware reports to taints, the kubelet and claims."""
