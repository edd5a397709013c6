"""A page that is loaded anew: the same address and port, another call, and nobody said goodbye.

The old call is still alive for the transceiver and owns the address. Every other time its goodbye
arrives late, when the new call speaks already.
"""

import asyncio
import functools

from tests.bench_media.stage import Stage, play, staged
from tests.figures.measurement import Findings, Measurement, expect
from tests.report import Target
from tests.unit.transceiver.harness import Client

RELOADS = 100
PORT = 40000
CONSENT_S = 2.0  # an old call lives no longer
FRAME_S = 0.02
WORDS = 3  # packets that have to come back
TARGETS = (
    Target("reload_rebound", "=", RELOADS, "reloads"),
    Target("reload_old_calls_left", "=", 0, "calls"),
)


def measurements() -> list[Measurement]:
    return [Measurement("reload", TARGETS, measure)]


def measure(reloads: int = RELOADS) -> Findings:
    return play(functools.partial(_scene, reloads))


async def _scene(reloads: int) -> Findings:
    async with staged(away_after_s=1.0, consent_s=CONSENT_S) as stage:
        page = await _load(stage, 0)
        expect(page is not None, "the first page did not connect")
        rebound = 0
        for n in range(1, reloads + 1):
            new = await _load(stage, n, page if n % 2 else None)
            rebound += new is not None
            page = new or page
        assert page is not None
        await _outlive(stage, page)
        left = len(stage.calls) - 1
        expect(await stage.hears(page), "the last page does not speak any more")
    return Findings({"reload_rebound": rebound, "reload_old_calls_left": left})


async def _load(stage: Stage, n: int, late: Client | None = None) -> Client | None:
    """The page of load `n`, if its call works; `late` is the page before it, whose goodbye comes
    in the midst of that."""
    page = stage.client(PORT, ufrag=f"page{n}", ssrc=1000 + n)
    try:
        await stage.connect(page)
    except TimeoutError:
        return None
    heard = await stage.hears(page)
    if late is not None and late.dtls is not None:
        late.dtls.close()
        stage.flush(late)
    for _ in range(WORDS):
        heard = await stage.hears(page) and heard
    return page if heard and stage.owner(page.address) is stage.call(page) else None


async def _outlive(stage: Stage, page: Client) -> None:
    """Let the page speak until the old calls have had their time."""
    for _ in range(round(2 * CONSENT_S / FRAME_S)):
        page.speak()
        stage.flush(page)
        await asyncio.sleep(FRAME_S)
        if len(stage.calls) <= 1:
            return
