"""The pages of docs/reference and the options in docs/cli.md, made from the code they are about.

`.venv/bin/python -m hack.reference` writes them anew; tests/hack/test_reference.py compares.
"""
