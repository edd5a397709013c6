"""Replies: asked for in text, twice at once, stopped by the client."""

from typing import Any

from tests.conversations.scripts import order
from tests.conversations.talk import Talk

STOPPED = "output_audio_buffer.stopped"
STARTED = "output_audio_buffer.started"


def message(text: str, **fields: Any) -> dict[str, Any]:
    """An item that the client writes."""
    content = [{"type": "input_text", "text": text}]
    item = {"type": "message", "role": "user", "content": content, **fields}
    return {"type": "conversation.item.create", "item": item}


async def to_text(talk: Talk) -> None:
    """A message, and an answer in text."""
    talk.send(message("What is the time?"))
    await talk.until("conversation.item.added")
    talk.send({"type": "response.create", "response": {"output_modalities": ["text"]}})
    done = await talk.until("response.done")
    talk.expect(done["response"]["status"] == "completed", "the response is not completed")
    talk.saw(order.CREATED, order.ITEM, order.WRITTEN)


async def text_session(talk: Talk) -> None:
    """A session in text answers what is spoken, too, or says so."""
    await talk.update({"output_modalities": ["text"]})
    talk.send(message("Good morning."))
    talk.send({"type": "response.create"})
    await talk.until("response.done")
    talk.saw(order.CREATED, order.UPDATED, order.ITEM, order.WRITTEN)


async def second_create(talk: Talk) -> None:
    """A second `response.create` is refused under its own id, the first goes on."""
    await talk.say(talk.phrase())
    await talk.until("response.created")
    talk.send({"type": "response.create", "event_id": "evt_second"})
    error = await talk.refused("evt_second")
    talk.expect(
        error["code"] == "conversation_already_has_active_response", f"code {error['code']}"
    )
    await talk.until(STOPPED)
    dones = talk.all("response.done")
    talk.expect(
        [event["response"]["status"] for event in dones] == ["completed"],
        "the active response was harmed",
    )


async def cancelled(talk: Talk) -> None:
    """The stop button before anything is heard."""
    await talk.say(talk.phrase())
    await talk.until("response.created")
    since = talk.now
    talk.send({"type": "response.cancel"})
    talk.send({"type": "output_audio_buffer.clear"})
    done = await talk.until("response.done")
    talk.expect(done["response"]["status"] == "cancelled", "it was not cancelled")
    talk.expect(
        done["response"]["status_details"]["reason"] == "client_cancelled", "it says another reason"
    )
    await talk.quiet(1.0)
    talk.silent(since + 0.04, talk.now)


async def nothing_to_cancel(talk: Talk) -> None:
    """An error, and the session goes on."""
    talk.send({"type": "response.cancel", "event_id": "evt_nothing"})
    await talk.refused("evt_nothing")
    await talk.say(talk.phrase())
    await talk.until(STOPPED)
    talk.saw(order.CREATED, order.ERROR, order.TURN, order.SPOKEN)


async def stop_button(talk: Talk) -> None:
    """`output_audio_buffer.clear` while it speaks: silence at once, and the words are cut."""
    await talk.say(talk.phrase(2.0))
    await talk.until(STARTED)
    await talk.quiet(talk.chance.uniform(0.5, 1.2))
    since = talk.now
    talk.send({"type": "output_audio_buffer.clear"})
    await talk.until("conversation.item.truncated")
    await talk.quiet(0.5)
    talk.silent(since + 0.05, talk.now)
    talk.saw(order.CREATED, order.TURN, order.BEGUN, order.HEARD, order.CUT)


async def tools(talk: Talk) -> None:
    """Tools are kept and shown, their results are items."""
    tool = {"type": "function", "name": "weather", "parameters": {"type": "object"}}
    updated = await talk.update({"tools": [tool], "tool_choice": "auto"})
    talk.expect(
        [each["name"] for each in updated["session"]["tools"]] == ["weather"], "no tool is shown"
    )
    output = {"type": "function_call_output", "call_id": "call_1", "output": '{"degrees": 21}'}
    talk.send({"type": "conversation.item.create", "item": output})
    await talk.until("conversation.item.done")
    talk.send({"type": "response.create", "response": {"output_modalities": ["text"]}})
    await talk.until("response.done")
    talk.saw(order.CREATED, order.UPDATED, order.ITEM, order.WRITTEN)
