"""Attributes that an operator adds to devices without code: rules in a file that may change.

`reading` makes rules of a text, `rule` says what they make of a device, `names` what the API takes,
`follow` keeps up with the file.
"""
