import asyncio

import pytest

from tests.conversations.stage import STEP_S, Stage, SteppedLoop
from tests.conversations.talk import Missed, Script, Talk
from transceiver.backends import echo
from transceiver.dialects.choice import DialectName


def stage() -> Stage:
    return Stage(lambda client: echo.make(client, echo.Mode.PACED), DialectName.REALTIME, {})


def run(on: Stage, script: Script) -> None:
    async def play() -> None:
        on.connect()
        talk = Talk(on)
        await talk.open()
        await script(talk)
        await on.end()

    with asyncio.Runner(loop_factory=lambda: SteppedLoop(lambda: on.now)) as runner:
        runner.run(play())


def test_time_passes_in_steps_and_what_is_said_comes_back() -> None:
    on = stage()

    async def script(talk: Talk) -> None:
        began = talk.now
        said = talk.phrase(2.0)
        await talk.say(said)
        assert talk.now - began == pytest.approx(2.0, abs=2 * STEP_S)
        await talk.quiet(0.5)
        talk.sounded(1.0, since=began)

    run(on, script)
    assert on.ended


def test_the_loops_timers_ring_by_the_stepped_clock() -> None:
    on = stage()
    rang: list[float] = []

    async def script(talk: Talk) -> None:
        began = talk.now
        asyncio.get_running_loop().call_later(3.0, lambda: rang.append(talk.now - began))
        await talk.quiet(2.5)
        assert not rang
        await talk.quiet(1.0)

    run(on, script)
    assert rang == [pytest.approx(3.0, abs=2 * STEP_S)]


def test_what_does_not_happen_is_missed() -> None:
    async def script(talk: Talk) -> None:
        for wrong in [("session.created", "session.updated"), ()]:
            with pytest.raises(Missed):
                talk.saw(wrong)
        talk.saw(("session.created",))
        with pytest.raises(Missed, match="of sound"):
            talk.sounded(0.5, since=talk.now)
        with pytest.raises(Missed, match=r"no response\.created .* session\.created"):
            await talk.until("response.created", within=0.2)

    run(stage(), script)
