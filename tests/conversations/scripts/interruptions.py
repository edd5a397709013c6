"""Interruptions: at every moment of a reply, by voice and by the client."""

from tests.conversations.scripts import order
from tests.conversations.scripts.turns import resumed
from tests.conversations.talk import Talk

STARTED, STOPPED = "output_audio_buffer.started", "output_audio_buffer.stopped"
SPEECH = "input_audio_buffer.speech_started"
QUIET_S = 0.05  # from the decision to silence: two packets, and where a step ends

before_it_sounds = resumed


async def at_its_first_packet(talk: Talk) -> None:
    """20 ms of it are on the wire."""
    await _reply(talk)
    await talk.quiet(0.02)
    await _talk_into(talk)


async def in_the_middle(talk: Talk) -> None:
    await _reply(talk)
    await talk.quiet(talk.chance.uniform(0.5, 1.2))
    await _talk_into(talk)
    truncated = talk.all("conversation.item.truncated")[0]
    talk.expect(truncated["audio_end_ms"] > 300, f"heard {truncated['audio_end_ms']} ms of it")


async def in_its_last_moment(talk: Talk) -> None:
    """In the last 100 ms: cut or at its end, but not both."""
    seconds = 1.6
    await talk.say(talk.phrase(seconds))
    await talk.until(STARTED)
    await talk.quiet(seconds - 0.1)
    await talk.say(talk.phrase(1.6))
    await talk.until(STARTED)
    ends = len(talk.all(STOPPED)) + len(talk.all("output_audio_buffer.cleared"))
    talk.expect(ends == 1, f"the first reply ended {ends} times")
    await talk.until(STOPPED)


async def after_its_end(talk: Talk) -> None:
    """Nothing is left to be cut."""
    await talk.say(talk.phrase())
    await talk.until(STOPPED)
    await talk.quiet(0.1)
    await talk.say(talk.phrase())
    await talk.until(STOPPED)
    talk.saw(order.CREATED, *(order.TURN, order.SPOKEN) * 2)


async def again_and_again(talk: Talk) -> None:
    """Each answer is talked into, three times."""
    await _reply(talk)
    for _ in range(3):
        await talk.quiet(talk.chance.uniform(0.4, 0.8))
        await talk.say(talk.phrase(2.0))
        await talk.until(STARTED)
    await talk.until(STOPPED)
    cuts = len(talk.all("output_audio_buffer.cleared"))
    talk.expect(cuts == 3, f"{cuts} replies were cut, want 3")


async def not_allowed(talk: Talk) -> None:
    """`interrupt_response` is false: the reply is heard to its end."""
    await talk.update(talk.listens(interrupt_response=False))
    await _reply(talk)
    await talk.quiet(0.4)
    await talk.say(talk.phrase(1.6))
    await talk.until(STOPPED)
    talk.expect(not talk.all("output_audio_buffer.cleared"), "it was cut")
    talk.expect(not talk.all("conversation.item.truncated"), "it was truncated")
    await talk.until(STOPPED)  # the answer to what was said meanwhile


async def by_truncation(talk: Talk) -> None:
    """A client that says itself what was heard: it is silent at once."""
    item_id = await _reply(talk)
    await talk.quiet(0.6)
    since = talk.now
    talk.send(_truncate(item_id, 400))
    truncated = await talk.until("conversation.item.truncated")
    talk.expect(truncated["audio_end_ms"] == 400, "another end than the client's")
    await talk.quiet(0.5)
    talk.silent(since + QUIET_S, talk.now)


async def by_wrong_truncation(talk: Talk) -> None:
    """Beyond its end, of a user's item, of none: errors."""
    item_id = await _reply(talk)
    await talk.until(STOPPED)
    user = talk.all("input_audio_buffer.committed")[0]["item_id"]
    for number, (wrong, end_ms) in enumerate([(item_id, 60_000), (user, 10), ("item_no", 10)]):
        event_id = f"evt_{number}"
        talk.send({**_truncate(wrong, end_ms), "event_id": event_id})
        await talk.refused(event_id)
    talk.saw(order.CREATED, order.TURN, order.SPOKEN, *(order.ERROR,) * 3)


async def _reply(talk: Talk) -> str:
    """Speak until the answer is heard; its item."""
    await talk.say(talk.phrase(2.2))
    await talk.until(STARTED)
    return str(talk.all("response.output_item.added")[-1]["item"]["id"])


async def _talk_into(talk: Talk) -> None:
    """The reply falls silent, and what was said is a turn of its own."""
    talk.begin(talk.phrase(2.0))
    await talk.until(SPEECH)
    decided = talk.now
    await talk.until("output_audio_buffer.cleared")
    while talk.mouth.speaking:
        await talk.step()
    talk.silent(decided + QUIET_S, talk.now)
    await talk.until(STOPPED)
    talk.saw(
        order.CREATED,
        *(order.TURN, order.BEGUN, order.HEARD),
        *(order.BARGE_IN, order.REST_OF_TURN, order.SPOKEN),
    )


def _truncate(item_id: str, end_ms: int) -> dict[str, object]:
    return {
        "type": "conversation.item.truncate",
        "item_id": item_id,
        "content_index": 0,
        "audio_end_ms": end_ms,
    }
