"""Route keys change under calls: a second one comes, callers come with it, the first one goes."""

import secrets
import signal
import time

from relayctl.reason import Reason
from relayctl.wire.address import Address
from relayctl.wire.route_token import Key, render_key
from tests.figures.measurement import Findings, Measurement, expect
from tests.lab import relay_counts
from tests.report import Target
from tests.siege.newcomers import Echo, Newcomers
from tests.siege.stage import Stage, lost, stage, talk

NEWCOMERS = 10
TARGETS = (
    Target("key_rotation_lost", "=", 0, "packets"),
    Target("key_rotation_connected", "=", 2 * NEWCOMERS, "with the new key"),
    Target("key_rotation_refused", "=", NEWCOMERS, "with the removed key"),
)

_RELOADS_S = 0.5
_CONSENT_S = 3.0  # the calls' own checks, whose token is of the removed key, come in this time


def measurements(quick: bool) -> list[Measurement]:
    return [Measurement("key_rotation", TARGETS, measure)]


def measure() -> Findings:
    with stage() as scene, scene.calls(2) as lean:
        first = scene.services.setup.key
        second = Key(first.id + 1, secrets.token_bytes(32))
        echo = Echo(scene.site.transceiver, scene.site.endpoint[0])
        with echo:
            early, _ = _connect(scene, echo.address, second)
            expect(early == 0, f"{early} got in with a key that the relay does not have")
            _keys(scene, first, second)
            both = _connect(scene, echo.address, first)[0]
            expect(both == NEWCOMERS, f"{both} got in with the old key beside the new one")
            added, _ = _connect(scene, echo.address, second)
            _keys(scene, second)
            old, counted = _connect(scene, echo.address, first)
            alone, _ = _connect(scene, echo.address, second)
        time.sleep(_CONSENT_S)
        harm = lost(lean)
        heard = talk(lean)
    refused = counted >= NEWCOMERS and NEWCOMERS - old
    return Findings(
        {
            "key_rotation_lost": sum(harm.values()),
            "key_rotation_connected": added + alone,
            "key_rotation_refused": int(refused),
        },
        {"drop_unknown_key": counted, "lost": harm, "talk": heard},
    )


def _keys(scene: Stage, *keys: Key) -> None:
    """What an operator does: write the file, send SIGHUP."""
    services = scene.services
    services.write("route.keys", "".join(f"{render_key(key)}\n" for key in keys))
    services.relay.process.send_signal(signal.SIGHUP)
    time.sleep(_RELOADS_S)


def _connect(scene: Stage, endpoint: Address, key: Key) -> tuple[int, int]:
    """How many newcomers got in, and how many packets were dropped for a key that is not known."""
    before = relay_counts.RelayCounts.read(scene.services)
    with Newcomers(scene.site, key, endpoint, NEWCOMERS) as them:
        connected = len(them.connect())
    counted = relay_counts.RelayCounts.read(scene.services).since(before)
    return connected, counted.reasons[Reason.DROP_UNKNOWN_KEY]
