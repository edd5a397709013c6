"""Which path everything is sent to, and when that changes. Sans-IO.

It moves only to a *proven* path, one that answered a check of ours, and then
(a) on USE-CANDIDATE, (b) when the client's media comes from there and nothing from the present
path, or (c) when the present path left three consents unanswered. A check alone moves nothing: a
browser with two interfaces asks its spare path all through the call.
"""

import math
from collections.abc import Iterable

from transceiver.ice.path import NEVER, Path

SILENT_S = 1.0  # of the present path, while another one is alive: then it is asked at once
SETTLE_S = 0.5  # the client's media may lag behind its nomination so long without undoing it
HOLD_S = 0.5  # a nomination this fresh stands against a repeated one of another path
MAX_HOLD_S = 8.0  # the hold doubles with each return to an earlier path
CALM_S = 20.0  # in which nobody wanted to return, and the hold is what it was at first


class Selection:
    """Decides; the agent carries out."""

    def __init__(self) -> None:
        self.present: Path | None = None
        self._hold_s = HOLD_S
        self._contested = NEVER  # when a return was wanted last

    def nominate(self, path: Path, proven: bool, now: float) -> bool:
        """USE-CANDIDATE came on `path`: whether to move there now.

        The latest nomination wins. Clients that nominate two paths at once repeat both, in turn:
        a repeated nomination counts only when the present path's has grown old.
        """
        repeated = path.nominated > NEVER
        path.nominated = now
        if path is self.present:
            return False
        if not proven or self.present is None:
            path.nomination_waits = True
            return False
        if not repeated:
            return True
        if now - self._contested >= CALM_S:
            self._hold_s = HOLD_S
        self._contested = now
        if now - self.present.nominated < self._hold_s:
            return False
        self._hold_s = min(2 * self._hold_s, MAX_HOLD_S)
        return True

    def media(self, path: Path, now: float) -> bool:
        """Media newer than all before came on `path`, not the present one: whether to move there,
        if it is proven. Two packets in a row are asked for, so that one that was overtaken on the
        way moves nothing."""
        previous, path.media = path.media, now
        present = self.present
        return present is not None and previous > max(present.heard, present.nominated + SETTLE_S)

    def proven(self, path: Path, now: float) -> bool:
        """`path` answered our check: whether to move there now."""
        present = self.present
        if present is None:
            return True
        if path is present:
            return False
        if path.nomination_waits and path.nominated >= present.nominated:
            return True
        if path.media > present.heard or present.is_lost:
            return True
        # First of a restart: the client nominates soon, unless the old path carries nothing.
        return path.proof != present.proof and now - present.heard >= SILENT_S

    def abandons(self, path: Path) -> bool:
        """Whether an answer from `path` would move us there, since the present one is lost."""
        present = self.present
        return present is not None and path is not present and present.is_lost

    def ask_due(self, paths: Iterable[Path]) -> float:
        """When the present path has to be asked for consent: regularly, and at once when it is
        silent while another one is alive. math.inf = it is being asked, or there is none."""
        present = self.present
        if present is None or present.asking:
            return math.inf
        if self.is_doubtful(paths) and not present.is_lost:
            return min(present.consent_due, present.heard + SILENT_S)
        return present.consent_due

    def is_doubtful(self, paths: Iterable[Path]) -> bool:
        """Whether the client was heard on another proven path since it was on the present one."""
        present = self.present
        return present is not None and any(
            path.proof is not None and path.heard > present.heard for path in paths
        )
