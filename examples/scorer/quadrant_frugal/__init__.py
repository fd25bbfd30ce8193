"""frugal: the smallest cards that do, so that big ones stay free for who needs them."""

from driver.model.allocation import Score, Term
from driver.model.names import MEMORY
from driver.policy.registry import Options
from driver.policy.view import Choice, NodeView

_GIB = 2**30 * 10**9  # Amounts are in billionths of a byte.


class Frugal:
    """Score = minus the memory of the chosen cards, used or not, in GiB.

    Cards of one size are equal to it: join it with a policy that tells those apart, such as
    `frugal,compact`.
    """

    def __init__(self, options: Options) -> None:
        """Weights and mix, in `options`, are of no use here."""

    def score(self, view: NodeView, choice: Choice) -> Score:
        """How little memory the chosen cards have; more is better, so it is counted negative."""
        chosen = {taken.index for taken in choice.taken}
        memory = sum(view.devices[index].capacity.get(MEMORY, 0) for index in chosen)
        return Score((Term("memory of the cards in GiB", -memory / _GIB),))
