"""What became of the packets of one RTP stream, by sequence number. Pure."""


class Ledger:
    """Sequence numbers are 16 bits and wrap (RFC 3550 section 5.1)."""

    def __init__(self) -> None:
        self.received = 0  # distinct packets
        self.duplicates = 0
        self.reordered = 0  # came after a later one
        self.max_gap_s = 0.0  # longest time between two packets
        self.gap_s = 0.0  # the same since `mark`
        self._first = 0
        self._highest = -1
        self._seen: set[int] = set()
        self._last: float | None = None

    @property
    def lost(self) -> int:
        """Packets that are missing between the first and the highest."""
        return self._highest - self._first + 1 - self.received if self.received else 0

    def receive(self, sequence: int, now: float) -> None:
        number = self._extend(sequence)
        if number in self._seen:
            self.duplicates += 1
            return
        self._seen.add(number)
        self.received += 1
        self.reordered += number < self._highest
        self._highest = max(self._highest, number)
        self._first = min(self._first, number)
        self._note_gap(now)
        self._last = now

    def gaps_until(self, now: float) -> tuple[float, float]:
        """Longest gap of all and since the mark, in seconds; the one that lasts counts too."""
        if self._last is not None:
            self._note_gap(now)
        return self.max_gap_s, self.gap_s

    def mark(self, now: float) -> None:
        """Begin a new measurement of `gap_s`. A gap that lasts counts from its beginning."""
        self.gaps_until(now)
        self.gap_s = 0.0

    def _note_gap(self, now: float) -> None:
        gap = 0.0 if self._last is None else now - self._last
        self.max_gap_s = max(self.max_gap_s, gap)
        self.gap_s = max(self.gap_s, gap)

    def _extend(self, sequence: int) -> int:
        """The number without wrapping that is nearest to the highest so far."""
        if not self.received:
            self._first = self._highest = sequence
            return sequence
        step = (sequence - self._highest) & 0xFFFF
        return self._highest + (step if step < 0x8000 else step - 0x10000)
