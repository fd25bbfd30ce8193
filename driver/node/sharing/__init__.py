"""How a card is divided: MIG partitions, time slices, MPS, and libraries that keep limits."""
