"""How evenly a model's sound comes: how late its chunks are, and how fast its clock runs. Pure."""

from collections import deque

FORGET_S = 10.0  # of sound, after which a third of a lateness is remembered
ENOUGH_S = 0.2  # who is further ahead than this is not early: he runs ahead
BIN_S = 5.0  # chunks whose mean is one point of the drift
BINS = 13  # points kept: a minute
LIVE = 0.02  # who keeps real time within 2 % is live; others run ahead and wait, or cannot keep up


class Producer:
    """Times in seconds. One talk is a line: sound that follows the sound before it."""

    def __init__(self) -> None:
        self.late = 0.0  # most that chunks came behind early ones, slowly forgotten
        self._early: float | None = None  # margin of these, slowly forgotten too
        self._began: float | None = None  # the line: when its first chunk came,
        self._position = 0.0  # and how much sound came since
        self._bin_began = 0.0
        self._sum = 0.0  # of offsets in the present bin
        self._count = 0
        self._points: deque[tuple[float, float]] = deque(maxlen=BINS)  # when, mean offset

    @property
    def drift(self) -> float | None:
        """Seconds that a live producer gains on our clock in a second; None: not live, or not known
        before ten seconds of one talk."""
        if len(self._points) < 2:
            return None
        (began, first), (ended, last) = self._points[0], self._points[-1]
        drift = (first - last) / (ended - began)
        return drift if abs(drift) < LIVE else None

    def chunk(self, seconds: float, margin: float | None, now: float) -> None:
        """A chunk of `seconds` came with `margin` seconds left before it was needed (negative: too
        late); None: talk has not begun."""
        forget = min(1.0, seconds / FORGET_S)
        self.late -= self.late * forget
        if margin is not None:
            early = max(0.0, margin) if self._early is None else self._early
            self._early = max(early - (early - margin) * forget, min(margin, ENOUGH_S))
            self.late = max(self.late, self._early - margin)
        if self._began is None:
            self._began = self._bin_began = now
            self._position = 0.0
        self._sum += now - self._began - self._position
        self._count += 1
        self._position += seconds
        if now - self._bin_began >= BIN_S:
            middle = (self._bin_began + now) / 2
            self._points.append((middle, self._sum / self._count))
            self._bin_began, self._sum, self._count = now, 0.0, 0

    def nearer(self, seconds: float) -> None:
        """All margins are less by `seconds` from now on."""
        if self._early is not None:
            self._early -= seconds

    def end(self) -> None:
        """The talk is over: what comes next is a line of its own."""
        self._began = self._early = None
        self._sum, self._count = 0.0, 0
        self._points.clear()
