"""How well policies place the tasks of a recorded cluster: the table of docs/policies.md."""
