"""Sessions and items: opened, changed, filled, asked for nonsense, at their end."""

from tests.conversations.scripts import order
from tests.conversations.scripts.replies import message
from tests.conversations.talk import Talk

STOPPED = "output_audio_buffer.stopped"

NONSENSE = (
    {"type": "session.dance", "event_id": "evt_unknown"},
    {"type": "session.update", "event_id": "evt_no_session"},
    {"type": "session.update", "event_id": "evt_list", "session": [1]},
    {"type": "conversation.item.create", "event_id": "evt_no_item"},
    {"type": "conversation.item.create", "event_id": "evt_kind", "item": {"type": "dream"}},
    {"type": "conversation.item.delete", "event_id": "evt_delete", "item_id": "item_no"},
    {"type": "conversation.item.retrieve", "event_id": "evt_retrieve", "item_id": 7},
    {"type": "conversation.item.truncate", "event_id": "evt_truncate", "item_id": "item_no"},
    {"type": "input_audio_buffer.append", "event_id": "evt_append", "audio": "AAAA"},
    {"type": "response.create", "event_id": "evt_create", "response": "now"},
)
UNREADABLE = ("", "no JSON", "[]", "7", "{", '{"type": NaN}', "[" * 100, '{"type": 5}')


async def changed_midway(talk: Talk) -> None:
    """Settings hold from the next turn on; unknown fields are kept, read-only ones are not."""
    await talk.say(talk.phrase())
    await talk.until(STOPPED)
    updated = await talk.update(
        {
            **talk.listens(silence_duration_ms=300),
            "instructions": "Be brief.",
            "id": "sess_mine",
            "x_unknown": {"kept": True},
        }
    )
    session = updated["session"]
    talk.expect(session.get("x_unknown") == {"kept": True}, "an unknown field is lost")
    talk.expect(session["id"] != "sess_mine", "a read-only field was changed")
    await talk.say(talk.phrase())
    await talk.until(STOPPED)
    talk.saw(order.CREATED, *(order.TURN, order.SPOKEN, order.UPDATED), order.TURN, order.SPOKEN)


async def agents_sdk(talk: Talk) -> None:
    """What @openai/agents-realtime does when it connects, and after a turn."""
    await talk.update(
        {
            "type": "realtime",
            "instructions": "You are kind.",
            "output_modalities": ["audio"],
            "audio": {
                "input": {
                    "format": {"type": "audio/pcm", "rate": 24000},
                    "noise_reduction": None,
                    "transcription": {"model": "gpt-4o-mini-transcribe"},
                    "turn_detection": {"type": "semantic_vad"},
                },
                "output": {"format": {"type": "audio/pcm", "rate": 24000}, "speed": 1},
            },
            "tools": [],
            "tool_choice": "auto",
        }
    )
    updated = await talk.update({"type": "realtime", "tracing": "auto"})
    talk.expect(updated["session"]["tracing"] == "auto", "tracing is not shown")
    await talk.say(talk.phrase())
    committed = await talk.until("input_audio_buffer.committed")
    talk.send({"type": "conversation.item.retrieve", "item_id": committed["item_id"]})
    retrieved = await talk.until("conversation.item.retrieved")
    talk.expect(retrieved["item"]["id"] == committed["item_id"], "another item came")
    await talk.until(STOPPED)


async def items(talk: Talk) -> None:
    """Made in their places, shown, deleted."""
    talk.send(message("second", id="item_b"))
    talk.send({**message("first", id="item_a"), "previous_item_id": "root"})
    talk.send({**message("between", id="item_ab"), "previous_item_id": "item_a"})
    talk.send({"type": "conversation.item.retrieve", "item_id": "item_ab"})
    await talk.until("conversation.item.retrieved")
    talk.send({"type": "conversation.item.delete", "item_id": "item_a"})
    await talk.until("conversation.item.deleted")
    talk.send(
        {"type": "conversation.item.retrieve", "item_id": "item_a", "event_id": "evt_deleted"}
    )
    await talk.refused("evt_deleted")
    talk.send(
        {
            **message("after none", id="item_x"),
            "previous_item_id": "item_no",
            "event_id": "evt_after",
        }
    )
    await talk.refused("evt_after")
    befores = [event["previous_item_id"] for event in talk.all("conversation.item.added")]
    talk.expect(befores == [None, None, "item_a"], f"items came after {befores}")
    talk.saw(
        order.CREATED,
        *(order.ITEM,) * 3,
        ("conversation.item.retrieved", "conversation.item.deleted"),
        *(order.ERROR,) * 2,
    )


async def nonsense(talk: Talk) -> None:
    """Each wrong event is an error with its id, and nothing else happens."""
    for event in NONSENSE:
        talk.send(event)
        await talk.refused(str(event["event_id"]))
    for text in UNREADABLE:
        talk.send_text(text)
        await talk.until("error")
    talk.saw(order.CREATED, *(order.ERROR,) * (len(NONSENSE) + len(UNREADABLE)))
    await talk.say(talk.phrase())
    await talk.until(STOPPED)


async def its_end(talk: Talk) -> None:
    """A session that is over: told before, then the call ends."""
    warned = await talk.until("error", within=20)
    talk.expect(warned["error"]["code"] == "session_expiring", f"code {warned['error']['code']}")
    over = await talk.until("error", within=20)
    talk.expect(over["error"]["code"] == "session_expired", f"code {over['error']['code']}")
    await talk.happens(lambda: talk.ended, "the call goes on", 12)


async def opened(talk: Talk) -> None:
    """A client of the beta protocol: flat session fields."""
    fields = {
        "modalities": ["text", "audio"],
        "input_audio_format": "pcm16",
        "turn_detection": None,
    }
    talk.send({"type": "session.update", "session": {**fields, "instructions": "Hum."}})
    updated = await talk.until("session.updated")
    shown = {name: updated["session"].get(name) for name in fields}
    talk.expect(shown == fields, f"the session shows {shown}")
    talk.saw(order.CREATED, order.UPDATED)


async def updates_only(talk: Talk) -> None:
    """A backend that only echoes has a session all the same."""
    updated = await talk.update({"instructions": "Echo.", "x_mine": 1})
    talk.expect(updated["session"]["x_mine"] == 1, "an unknown field is lost")
    talk.send({"type": "response.create", "event_id": "evt_create"})
    await talk.refused("evt_create")
    await talk.say(talk.phrase())
    await talk.quiet(1.0)
    talk.expect(not talk.all("response.created"), "an echo made a response")
