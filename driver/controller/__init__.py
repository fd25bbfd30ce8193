"""The decisions of a running cluster: ledger, commit (GPU axis), placement (node axis), translation."""
