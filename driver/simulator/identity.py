"""Which UID and which name the API server gives an object.

The real ones are random; these follow from a seed, so that the same input always gives the same
output. Source of alphabet and lengths: `k8s.io/apiserver/pkg/storage/names` and
`k8s.io/apimachinery/pkg/util/rand`.
"""

import hashlib
import uuid

# No vowels and no digits that look like letters, so that no suffix is a word.
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX_LENGTH = 5
_MAX_BASE = 63 - _SUFFIX_LENGTH
# Any fixed namespace does: it only has to be ours.
_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_DNS, "simulator.quadrant.dev")


def uid(seed: str) -> str:
    """The UID of the object that `seed` stands for."""
    return str(uuid.uuid5(_NAMESPACE, seed))


def suffix(seed: str, length: int = _SUFFIX_LENGTH) -> str:
    """Letters and digits that are safe in a name."""
    digest = hashlib.sha256(seed.encode()).digest()
    return "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in digest[:length])


def generated_name(base: str, seed: str) -> str:
    """The name that `metadata.generateName` leads to; a base that is too long is cut."""
    return base[:_MAX_BASE] + suffix(seed)
