"""A call's entry in the report, and its figures against their targets. Pure.

The kernel's share is counted from the moment at which the relay calls the flow confirmed: what
comes before opens the flow, and is user space's task.
"""

from dataclasses import dataclass
from typing import Any

from tests.demo import ledger
from tests.demo.ledger import Counted, Ledger
from tests.demo.talk import Talk
from tests.lab import speech
from tests.lab.ear import Hearing, correlate
from tests.report import Target, Value

LIKENESS = {"aiortc": 0.8, "chromium": 0.7}  # what a client's own coder and buffer leave
WINDOWS = 0.5  # share of the call's seconds that have to hold speech to judge


@dataclass(frozen=True)
class Account:
    """`entry` is for the report's list of calls, `values` are for its targets."""

    entry: dict[str, Any]
    values: dict[str, Value]


def targets(client: str, *, xdp: bool, vip: str, seconds: float) -> list[Target]:
    """What a call of `client` has to reach."""
    shares = [Target(f"{client}: kernel share {way}", "≥", 99.5, "%") for way in ("up", "down")]
    return [
        *(shares if xdp else []),
        Target(f"{client}: RTP packets lost", "=", 0),
        Target(f"{client}: relay and ends agree", "=", True),
        Target(f"{client}: selected remote", "=", vip),
        Target(f"{client}: correlation", "≥", LIKENESS[client]),
        Target(f"{client}: seconds judged", "≥", int(seconds * WINDOWS), "s"),
        Target(f"{client}: negative control", "<", 0.3),
    ]


def account(talk: Talk, counted: Counted, *, xdp: bool, seconds: float) -> Account:
    """Put together what client, transceiver, relay and ear said about one call."""
    heard = correlate(speech.spoken(seconds), talk.heard, speech.RATE)
    other = correlate(speech.spoken(seconds, speech.OTHER), talk.heard, speech.RATE)
    lost = talk.losses()
    disagreements = ledger.disagreements(counted.whole, counted.flow, talk.sent, talk.received)
    since = counted.since_confirmed
    entry = {
        "client": talk.client,
        "version": talk.version,
        "setup_ms": talk.setup_ms,
        "packets": counted.whole.packets(),
        "since_confirmed": None if since is None else _since(since),
        "rtp": {"sent": talk.sent, "received": talk.received, "transceiver": talk.far["packets"]},
        "lost": lost,
        "disagreements": disagreements,
        "punts": counted.whole.punts,
        "drops": counted.whole.drops,
        "flow": counted.flow,
        "selected_remote": talk.remote,
        "echo_delay_ms": round(talk.echo_delay_ms, 1),
        **_heard(heard),
        "negative_control": round(other.median, 3),
        **talk.more,
    }
    values: dict[str, Value] = {
        "RTP packets lost": sum(lost.values()),
        "relay and ends agree": not disagreements,
        "selected remote": talk.remote,
        "correlation": heard.median,
        "seconds judged": heard.windows,
        "negative control": other.median,
    }
    if xdp and since is not None:
        values["kernel share up"] = since.kernel_share(since.up)
        values["kernel share down"] = since.kernel_share(since.down)
    return Account(entry, {f"{talk.client}: {name}": value for name, value in values.items()})


def _since(confirmed: Ledger) -> dict[str, Any]:
    kernel = {"up": confirmed.up.kernel, "down": confirmed.down.kernel}
    return {"kernel": kernel, "punts": confirmed.punts}


def _heard(heard: Hearing) -> dict[str, float | int]:
    return {
        "correlation": round(heard.median, 3),
        "correlation_min": round(heard.min, 3),
        "windows": heard.windows,
        "lag_drift_ms": round(heard.lag_drift_ms, 1),
    }
