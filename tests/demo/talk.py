"""One call of the demo, as those saw it who took part. Pure."""

from dataclasses import dataclass, field
from typing import Any

from tests.lab.speech import Samples


@dataclass(frozen=True)
class Talk:
    """One call, as its client and the transceiver saw it. Packets are RTP."""

    client: str
    version: str
    setup_ms: dict[str, float]
    sent: int
    received: int
    lost: int  # of the returned packets, by sequence number
    far: dict[str, Any]  # what the transceiver said when nothing was under way any more
    remote: str | None  # of the selected candidate pair
    heard: Samples
    echo_delay_ms: float
    more: dict[str, Any] = field(default_factory=dict)

    def losses(self) -> dict[str, int]:
        """RTP packets of a call that did not arrive, each way.

        Sequence numbers show a gap, but neither a first nor a last packet that never came: the
        larger of gap and difference between sent here and received there is the loss.
        """
        far = self.far["packets"]
        return {
            "up": max(self.far["lost"], self.sent - far["up"]),
            "down": max(self.lost, far["down"] - self.received),
        }
