"""CEL selectors of devices: lexer, parser, checker, compiled closures. Pure."""
