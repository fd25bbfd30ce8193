"""Names and UIDs as the API server gives them, but always the same."""

import re
import uuid

from hypothesis import given
from hypothesis import strategies as st

from driver.simulator import identity


@given(st.text(), st.text(alphabet="abc-", min_size=1, max_size=90))
def test_generated_names_are_names(seed: str, base: str) -> None:
    """At most 63 characters, the base as far as it fits, a suffix of five."""
    name = identity.generated_name(base, seed)
    assert len(name) <= 63
    assert name[:-5] == base[:58]
    assert re.fullmatch(r"[bcdfghjklmnpqrstvwxz2456789]{5}", name[-5:])


def test_the_same_seed_gives_the_same() -> None:
    """And another one something else."""
    assert identity.uid("a") == identity.uid("a") != identity.uid("b")
    assert identity.suffix("a") == identity.suffix("a") != identity.suffix("b")
    assert str(uuid.UUID(identity.uid("a"))) == identity.uid("a")
