"""`.venv/bin/python -m hack.pictures` draws the pictures of docs/pictures anew.

With a number as its argument it plays that many draws (seeds 1, 2, …) and prints what came of each.
"""

import sys

from hack.pictures import FILE, picture
from hack.pictures.mix import arrivals
from hack.pictures.played import COMPACT, NOBODY, play


def draws(count: int) -> None:
    """A line for each draw and way: what the picture shows of one."""
    print("seed  by                 turned away  8 fit  4 fit  an empty machine (% of moments)")
    for seed in range(1, count + 1):
        came = list(arrivals(seed))
        for name, policy in (("kube-scheduler", NOBODY), ("compact/compact", COMPACT)):
            found = play(came, policy)
            late = found.empty[len(found.empty) // 4 :]
            share = 100 * sum(map(bool, late)) / len(late)
            numbers = f"{found.turned_away:11}  {found.room[8]:5}  {found.room[4]:5}  {share:6.0f}"
            print(f"{seed:4}  {name:17}  {numbers}")


if len(sys.argv) > 1:
    draws(int(sys.argv[1]))
else:
    FILE.write_text(picture(), encoding="utf-8")
