"""helm/quadrant/values.schema.json, made from structs: those of the settings, and the chart's own.

`.venv/bin/python -m hack.valuesschema` writes it anew; with `--check` it only says whether it is
what would be written. What each value is for comes from the comments of values.yaml.
"""
