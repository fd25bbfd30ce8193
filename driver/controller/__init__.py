"""The decisions of a running cluster: ledger, commit, placement, translation."""
