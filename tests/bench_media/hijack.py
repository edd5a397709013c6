"""A thief with a call in the same process, who can put the victim's address on his datagrams.

He knows his own credentials, the victim's address and its SSRC, and every word that the victim said
before; he does not know the victim's passwords, nor does he get what is sent to it.
"""

import functools
import os
from collections.abc import Callable

from tests.bench_media.stage import HOST, Stage, play, staged, until
from tests.figures.measurement import Findings, Measurement, expect
from tests.report import Target
from tests.unit.transceiver.harness import Client, garbage_rtp
from tests.unit.transceiver.records import ALERT, record

TRIES = 1000
CALLS = 100  # of the thief, one after another
VICTIM_PORT, THIEF_PORT = 40000, 50000
TARGETS = (
    Target("takeovers", "=", 0, "tries"),
    Target("takeover_victim_lost", "=", 0, "packets"),
    Target("takeover_victim_moved", "=", 0, "times"),
)

Trick = Callable[[Client, Client], bytes]


def measurements() -> list[Measurement]:
    return [Measurement("takeover", TARGETS, measure)]


def measure(tries: int = TRIES) -> Findings:
    return play(functools.partial(_scene, tries))


async def _scene(tries: int) -> Findings:
    async with staged() as stage:
        victim = stage.client(VICTIM_PORT, ssrc=0x11)
        await stage.connect(victim)
        expect(await stage.hears(victim), "the victim's call does not work")
        call, taken, lost = stage.call(victim), 0, 0
        answered = victim.responses
        thief = await _thief(stage, 0)
        for n in range(tries):
            if n % max(1, tries // CALLS) == 0:
                thief = await _thief(stage, n)
            for trick in TRICKS:
                stage.up(victim.address, trick(victim, thief))
            lost += not await stage.hears(victim)
            taken += stage.owner(victim.address) is not call or call.state != "connected"
        answered = victim.responses - answered
        expect(answered >= tries, "the thief's checks were not authentic")
        moved = call.describe()["moves"]
        dropped = dict(stage.transceiver.counts.dropped)
        expect(await stage.hears(thief), "the thief's own call does not work")
    assert isinstance(moved, int)
    return Findings(
        {"takeovers": taken, "takeover_victim_lost": lost, "takeover_victim_moved": moved},
        {"tries": tries, "datagrams": tries * len(TRICKS), "counted": dropped},
    )


async def _thief(stage: Stage, n: int) -> Client:
    """A connected call of the thief; every other one claims the victim's SSRC in its offer."""
    thief = stage.client(THIEF_PORT + n, ssrc=0x11 if n % 2 else 0x22, ufrag="thief")
    await stage.connect(thief)
    await until(lambda: stage.owner((HOST, THIEF_PORT + n)) is stage.call(thief))
    return thief


def _check(victim: Client, thief: Client) -> bytes:
    return thief.check_bytes()


def _victims_check(victim: Client, thief: Client) -> bytes:
    """The victim's user name under the thief's password."""
    return victim.check_bytes(pwd=thief.server_pwd)


def _proof(victim: Client, thief: Client) -> bytes:
    """An answer to a check that the thief cannot see."""
    answer = bytearray(thief.check_bytes())
    answer[:2] = b"\x01\x01"
    return bytes(answer)


def _voice(victim: Client, thief: Client) -> bytes:
    thief.speak()
    return thief.outbox.pop()


def _noise(victim: Client, thief: Client) -> bytes:
    return garbage_rtp(victim.ssrc)


def _hello(victim: Client, thief: Client) -> bytes:
    """A ClientHello, as for a new association."""
    fresh = Client(thief.address)
    fresh.take_answer("a=fingerprint:sha-256 " + ":".join(["00"] * 32))
    fresh.hello(0.0)
    return fresh.outbox.pop()


def _goodbye(victim: Client, thief: Client) -> bytes:
    return record(ALERT, b"\x01\x00", number=1 << 40)


def _secret_goodbye(victim: Client, thief: Client) -> bytes:
    return record(ALERT, os.urandom(26), epoch=1, number=1 << 40)


TRICKS: tuple[Trick, ...] = (
    *(_check, _victims_check, _proof, _voice),
    *(_noise, _hello, _goodbye, _secret_goodbye),
)
