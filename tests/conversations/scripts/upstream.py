"""Conversations whose session an upstream server owns: it answers, we pass on, play and cut."""

from tests.conversations.scripts import order
from tests.conversations.scripts.replies import message
from tests.conversations.talk import Talk

STARTED, STOPPED = "output_audio_buffer.started", "output_audio_buffer.stopped"
QUIET_S = 0.05


async def turn(talk: Talk) -> None:
    """A spoken turn and a spoken answer."""
    since = talk.now
    await talk.say(talk.phrase())
    await talk.until(STARTED)
    await talk.until(STOPPED)
    talk.saw(order.CREATED, order.TURN, order.SPOKEN)
    talk.sounded(1.5, since=since)


async def turns(talk: Talk) -> None:
    """One after the other."""
    for _ in range(2):
        await talk.say(talk.phrase())
        await talk.until(STOPPED)
        await talk.quiet(0.2)
    talk.saw(order.CREATED, *(order.TURN, order.SPOKEN) * 2)


async def written(talk: Talk) -> None:
    """Text for text."""
    talk.send(message("Good morning."))
    await talk.until("conversation.item.done")
    talk.send({"type": "response.create", "response": {"output_modalities": ["text"]}})
    await talk.until("response.done")
    talk.saw(order.CREATED, order.ITEM, order.WRITTEN)


async def tool(talk: Talk) -> None:
    """The model calls a tool; its result is answered."""
    tool = {"type": "function", "name": "weather", "parameters": {"type": "object"}}
    await talk.update({"tools": [tool]})
    await talk.say(talk.phrase())
    call = await talk.until("response.function_call_arguments.done")
    await talk.until("response.done")
    output = {"type": "function_call_output", "call_id": call["call_id"], "output": "21"}
    talk.send({"type": "conversation.item.create", "item": output})
    talk.send({"type": "response.create"})
    await talk.until(STOPPED)


async def interrupted(talk: Talk) -> None:
    """Speech in the middle of a reply of which the rest has come already: cut at once."""
    await talk.say(talk.phrase())
    await talk.until(STARTED)
    await talk.quiet(talk.chance.uniform(0.5, 1.0))
    talk.begin(talk.phrase(1.6))
    await talk.until("input_audio_buffer.speech_started")
    decided = talk.now
    await talk.until("output_audio_buffer.cleared")
    truncated = await talk.until("conversation.item.truncated")
    talk.expect(truncated["audio_end_ms"] > 200, f"heard {truncated['audio_end_ms']} ms of it")
    while talk.mouth.speaking:
        await talk.step()
    talk.silent(decided + QUIET_S, talk.now)
    await talk.until(STOPPED)


async def cancelled(talk: Talk) -> None:
    """The stop button of a client: `response.cancel` if it is made, then clear."""
    await talk.say(talk.phrase())
    await talk.until("response.created")
    talk.send({"type": "response.cancel"})
    talk.send({"type": "output_audio_buffer.clear"})
    done = await talk.until("response.done")
    talk.expect(done["response"]["status"] == "cancelled", "it was not cancelled")
    since = talk.now
    await talk.quiet(1.0)
    talk.silent(since + QUIET_S, talk.now)


async def pushed(talk: Talk) -> None:
    """Push to talk."""
    await talk.update({"audio": {"input": {"turn_detection": None}}})
    await talk.say(talk.phrase())
    talk.send({"type": "input_audio_buffer.commit"})
    await talk.until("input_audio_buffer.committed")
    talk.send({"type": "response.create"})
    await talk.until(STOPPED)
    talk.saw(order.CREATED, order.UPDATED, order.COMMITTED, order.SPOKEN)


async def refusals(talk: Talk) -> None:
    """What upstream refuses and what we refuse, with the client's ids."""
    talk.send({"type": "response.cancel", "event_id": "evt_cancel"})
    await talk.refused("evt_cancel")
    talk.send({"type": "input_audio_buffer.append", "audio": "AAAA", "event_id": "evt_append"})
    error = await talk.refused("evt_append")
    talk.expect(error["code"] == "unsupported_over_webrtc", f"code {error['code']}")
    talk.saw(order.CREATED, order.ERROR, order.ERROR)
    await talk.say(talk.phrase())
    await talk.until(STOPPED)


async def kept(talk: Talk) -> None:
    """Settings go up but for the formats, which the SDP has decided; unknown ones too."""
    format_ = {"type": "audio/pcmu"}
    updated = await talk.update(
        {"instructions": "Be kind.", "audio": {"input": {"format": format_}}}
    )
    session = updated["session"]
    talk.expect(session["instructions"] == "Be kind.", "the instructions did not go up")
    talk.expect(session["audio"]["input"]["format"] != format_, "the format was changed")
    await talk.say(talk.phrase())
    await talk.until(STOPPED)


async def overwritten(talk: Talk) -> None:
    """`response.create` while one is made: the error of upstream, with the client's id."""
    talk.send(message("Good morning."))
    talk.send({"type": "response.create"})
    await talk.until("response.created")
    talk.send({"type": "response.create", "event_id": "evt_second"})
    error = await talk.refused("evt_second")
    talk.expect(
        error["code"] == "conversation_already_has_active_response", f"code {error['code']}"
    )
    await talk.until(STOPPED)


async def transcribed(talk: Talk) -> None:
    """What was said, in the model's words."""
    await talk.update({"audio": {"input": {"transcription": {"model": "whisper-1"}}}})
    await talk.say(talk.phrase())
    committed = await talk.until("input_audio_buffer.committed")
    await talk.until(STOPPED)
    (told,) = talk.all("conversation.item.input_audio_transcription.completed")
    talk.expect(told["item_id"] == committed["item_id"], "the transcript is of another turn")
    talk.saw(order.CREATED, order.UPDATED, order.TURN, order.SPOKEN)


async def lost(talk: Talk) -> None:
    """The server's connection breaks in a reply: told, and the next turn is answered."""
    await talk.say(talk.phrase())
    await talk.until(STARTED)
    codes = [(await talk.until("error"))["error"]["code"] for _ in range(2)]
    talk.expect(codes == ["backend_unavailable", "backend_reconnected"], f"told {codes}")
    (done,) = talk.all("response.done")
    talk.expect(done["response"]["status"] == "failed", "the broken reply did not fail")
    await talk.say(talk.phrase())
    await talk.until(STARTED)
    await talk.until(STOPPED)
