"""The kubelet plugin of one node: inventory, slices, registration, prepare and unprepare."""
