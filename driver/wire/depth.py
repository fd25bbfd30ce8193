"""How to read a document that nests deeper than a reader can follow: without what is too deep.

Anybody who may create a claim can put thousands of brackets into the parameters for a driver, and
the API server takes them. Such an object must neither end the process nor hide from it: what we
read of objects nests a dozen levels deep, so nothing is lost that we look at.
"""

import re

# Far beyond what we read of any object, and far below what is too deep for a reader.
MAX_DEPTH = 128
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[{]|[\]}]', re.DOTALL)


def shallow(document: bytes) -> bytes:
    """The same JSON with null in the place of every list and object below `MAX_DEPTH`.

    What is no JSON comes back as something that is none either.
    """
    kept: list[bytes] = []
    depth, start = 0, 0
    for token in _TOKEN.finditer(document):
        mark = token[0]
        if mark in (b"[", b"{"):
            depth += 1
            if depth == MAX_DEPTH + 1:
                kept += (document[start : token.start()], b"null")
        elif mark in (b"]", b"}"):
            depth -= 1
            if depth == MAX_DEPTH:
                start = token.end()
    if depth <= MAX_DEPTH:
        kept.append(document[start:])
    return b"".join(kept)
