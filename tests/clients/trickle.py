"""What test clients on aiortc need to trickle, which aiortc does not do by itself.

It gathers before it has an offer. So the offer is taken apart: without candidates, as browsers post
theirs, and the candidates to send after it.
"""

import re
from dataclasses import dataclass

_CANDIDATE = re.compile(r"a=(candidate:[^\r\n]*)\r\n")
_END = "a=end-of-candidates\r\n"


@dataclass(frozen=True)
class Trickled:
    """`ufrag` and `pwd` are those of the first section: all of it is one bundle."""

    offer: str
    candidates: tuple[str, ...]
    ufrag: str
    pwd: str


def take_apart(offer: str) -> Trickled:
    """Raises `ValueError` for an offer without credentials."""
    ufrag, pwd = (re.search(rf"a=ice-{name}:(\S+)", offer) for name in ("ufrag", "pwd"))
    if ufrag is None or pwd is None:
        raise ValueError("the offer has no ICE credentials")
    bare = _CANDIDATE.sub("", offer).replace(_END, "")
    return Trickled(bare, tuple(dict.fromkeys(_CANDIDATE.findall(offer))), ufrag[1], pwd[1])
