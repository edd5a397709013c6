"""Turns: by voice, by button, with pauses, with nobody answering."""

from tests.conversations.mouth import phrase
from tests.conversations.scripts import order
from tests.conversations.talk import Talk

STOPPED = "output_audio_buffer.stopped"
COMMITTED = "input_audio_buffer.committed"


async def one(talk: Talk) -> None:
    """Somebody speaks and is answered."""
    said = talk.phrase()
    since = talk.now
    await talk.say(said)
    await talk.until("output_audio_buffer.started")
    await talk.until(STOPPED)
    talk.saw(order.CREATED, order.TURN, order.SPOKEN)
    talk.sounded(len(said) / 48_000 - 0.5, since=since)


async def two(talk: Talk) -> None:
    """Each waits for the other."""
    for _ in range(2):
        await talk.say(talk.phrase())
        await talk.until(STOPPED)
        await talk.quiet(0.3)
    talk.saw(order.CREATED, *(order.TURN, order.SPOKEN) * 2)


async def nobody_speaks(talk: Talk) -> None:
    """A quiet room is no turn."""
    await talk.quiet(4.0)
    talk.saw(order.CREATED)


async def short_pause(talk: Talk) -> None:
    """A pause that is shorter than the setting ends no turn."""
    for _ in range(2):
        await talk.say(talk.phrase())
        await talk.quiet(0.2)
    await talk.until(STOPPED)
    talk.saw(order.CREATED, order.TURN, order.SPOKEN)


async def resumed(talk: Talk) -> None:
    """Speech goes on before the reply is heard: one turn, no sound into it, one reply."""
    await talk.say(talk.phrase())
    await talk.until("response.created")
    since = talk.now
    more = talk.phrase(1.6)
    await talk.say(more)
    talk.silent(since, talk.now)
    await talk.until(STOPPED)
    started = talk.all("input_audio_buffer.speech_started")
    committed = talk.all(COMMITTED)
    talk.expect(len(committed) == 1, f"{len(committed)} turns were committed")
    talk.expect(
        {event["item_id"] for event in started} == {committed[0]["item_id"]},
        "the turn that goes on has another item",
    )
    statuses = [event["response"]["status"] for event in talk.all("response.done")]
    talk.expect(statuses == ["cancelled", "completed"], f"responses ended {statuses}")


async def no_response(talk: Talk) -> None:
    """`create_response` is false: the turn is told, and answered when the client wants it."""
    await talk.update(talk.listens(create_response=False))
    await talk.say(talk.phrase())
    await talk.until(COMMITTED)
    await talk.quiet(1.0)
    talk.saw(order.CREATED, order.UPDATED, order.TURN)
    talk.send({"type": "response.create"})
    await talk.until(STOPPED)
    talk.saw(order.CREATED, order.UPDATED, order.TURN, order.SPOKEN)


async def push_to_talk(talk: Talk) -> None:
    """The client says where a turn ends and when it wants an answer."""
    await talk.update({"audio": {"input": {"turn_detection": None}}})
    await talk.say(talk.phrase())
    await talk.quiet(0.2)
    talk.send({"type": "input_audio_buffer.commit"})
    await talk.until(COMMITTED)
    talk.send({"type": "response.create"})
    await talk.until(STOPPED)
    talk.saw(order.CREATED, order.UPDATED, order.COMMITTED, order.SPOKEN)


async def button_for_nothing(talk: Talk) -> None:
    """A commit is an error when nothing was heard since the last one, or since `clear`."""
    await talk.update({"audio": {"input": {"turn_detection": None}}})
    await talk.quiet(0.3)
    talk.send({"type": "input_audio_buffer.commit"})
    talk.send({"type": "input_audio_buffer.commit", "event_id": "evt_nothing"})
    await talk.refused("evt_nothing")
    await talk.say(talk.phrase())
    talk.send({"type": "input_audio_buffer.clear"})
    talk.send({"type": "input_audio_buffer.commit", "event_id": "evt_cleared"})
    await talk.refused("evt_cleared")
    talk.saw(
        *(order.CREATED, order.UPDATED, order.COMMITTED, order.ERROR),
        *(("input_audio_buffer.cleared",), order.ERROR),
    )


async def asks_for_words(talk: Talk) -> None:
    """Transcripts are asked for where there is no recogniser: one failure a turn."""
    await talk.update({"audio": {"input": {"transcription": {"model": "whisper-1"}}}})
    for _ in range(2):
        await talk.say(talk.phrase())
        await talk.until(STOPPED)
    failed = talk.all("conversation.item.input_audio_transcription.failed")
    codes = [event["error"]["code"] for event in failed]
    talk.expect(codes == ["no_recogniser"] * 2, f"transcriptions failed with {codes}")
    talk.saw(order.CREATED, order.UPDATED, *(order.TURN, order.SPOKEN) * 2)


async def nobody_answers(talk: Talk) -> None:
    """`idle_timeout_ms`: who is silent for long is asked again."""
    await talk.update(talk.listens(idle_timeout_ms=1500))
    await talk.say(phrase(2))
    await talk.until(STOPPED)
    event = await talk.until("input_audio_buffer.timeout_triggered")
    talk.expect(event["audio_end_ms"] >= event["audio_start_ms"], "the wait ends before it begins")
    await talk.until(STOPPED)
