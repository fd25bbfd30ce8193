"""CEL selectors of devices, as Kubernetes' scheduler evaluates them. Pure.

`program.compile_selector(text)` gives a `Program`, `device.SelectorDevice.of(driver, device)` what
it is asked about. On the way from text to answer: `lexer` and `parser` (with `macros`) build the
tree of `syntax`; `checker` types it, with `unify` and `validation`, against the functions that
`declarations` gathers from `functions`; `closures` turns it into Python closures; `frame` and
`cost` go along with each evaluation.
"""
