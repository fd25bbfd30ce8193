"""What containers see of a claim: CDI files and files of metadata."""
