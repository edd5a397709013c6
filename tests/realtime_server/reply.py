"""A response of the test server, from `response.created` to `response.done`, at its pace."""

import asyncio
import base64
import copy
from collections.abc import Callable
from typing import Any

from tests.realtime_server import sound
from tests.realtime_server.conversation import Conversation, Event

USAGE = {
    "total_tokens": 20,
    "input_tokens": 10,
    "output_tokens": 10,
    "input_token_details": {"text_tokens": 0, "audio_tokens": 10, "cached_tokens": 0},
    "output_token_details": {"text_tokens": 0, "audio_tokens": 10},
}
LIMITS = [{"name": "requests", "limit": 1000, "remaining": 999, "reset_seconds": 1.5}]


class Reply:
    """`spoken_s(seconds)` is told how much sound was said, after each delta."""

    def __init__(
        self,
        conversation: Conversation,
        overrides: Event,
        say: Callable[[Event], None],
        spoken_s: Callable[[float], None],
    ) -> None:
        self._conversation = conversation
        self._script = conversation.script
        self._say = say
        self._spoken_s = spoken_s
        self._cancelled: str | None = None
        self._woken = asyncio.Event()
        wanted = overrides.get("output_modalities")
        self._modalities = wanted or conversation.session["output_modalities"]
        self.id = conversation.new_id("resp")
        conversation.active = self.id
        self._output: list[Event] = []

    def cancel(self, reason: str) -> None:
        self._cancelled = reason
        self._woken.set()

    async def run(self) -> None:
        self._say({"type": "response.created", "response": self._response("in_progress")})
        self._say({"type": "rate_limits.updated", "rate_limits": LIMITS})
        await self._wait(self._script.think_s)
        if not self._cancelled:
            if self._wants_tool():
                self._call_tool()
            elif "audio" in self._modalities:
                await self._speak()
            else:
                self._write()
        self._conversation.active = None
        status = "cancelled" if self._cancelled else "completed"
        self._say({"type": "response.done", "response": self._response(status)})

    def _wants_tool(self) -> bool:
        items = self._conversation.items
        answered = bool(items) and items[-1]["type"] == "function_call_output"
        return bool(self._conversation.session["tools"]) and not answered

    def _response(self, status: str) -> Event:
        details = {"type": status, "reason": self._cancelled} if self._cancelled else None
        return {
            "object": "realtime.response",
            "id": self.id,
            "status": status,
            "status_details": details,
            "output": copy.deepcopy(self._output),
            "conversation_id": "conv_test",
            "output_modalities": list(self._modalities),
            "max_output_tokens": "inf",
            "usage": None if status == "in_progress" else USAGE,
            "metadata": None,
        }

    def _open(self, kind: str, **fields: Any) -> Event:
        item_id = self._conversation.new_id("item")
        item: Event = {"id": item_id, "object": "realtime.item", "type": kind, **fields}
        item["status"] = "in_progress"
        added = {"response_id": self.id, "output_index": 0, "item": copy.deepcopy(item)}
        self._say({"type": "response.output_item.added", **added})
        self._conversation.add(item)
        return item

    def _close(self, item: Event) -> None:
        item["status"] = "incomplete" if self._cancelled else "completed"
        self._output.append(item)
        done = {"response_id": self.id, "output_index": 0, "item": copy.deepcopy(item)}
        self._say({"type": "response.output_item.done", **done})
        self._conversation.done(item)

    def _call_tool(self) -> None:
        tool = self._conversation.session["tools"][0]
        call_id, arguments = self._conversation.new_id("call"), '{"city": "Zürich"}'
        item = self._open("function_call", name=tool["name"], call_id=call_id, arguments="")
        of = {"response_id": self.id, "item_id": item["id"], "output_index": 0, "call_id": call_id}
        kind = "response.function_call_arguments"
        self._say({"type": f"{kind}.delta", **of, "delta": arguments})
        self._say({"type": f"{kind}.done", **of, "name": tool["name"], "arguments": arguments})
        item["arguments"] = arguments
        self._close(item)

    def _write(self) -> None:
        item = self._open("message", role="assistant", content=[])
        of = {"response_id": self.id, "item_id": item["id"], "output_index": 0, "content_index": 0}
        part = {"type": "text", "text": self._script.transcript}
        self._say({"type": "response.content_part.added", **of, "part": {**part, "text": ""}})
        self._say({"type": "response.output_text.delta", **of, "delta": part["text"]})
        self._say({"type": "response.output_text.done", **of, "text": part["text"]})
        self._say({"type": "response.content_part.done", **of, "part": part})
        item["content"] = [{"type": "output_text", "text": part["text"]}]
        self._close(item)

    async def _speak(self) -> None:
        item = self._open("message", role="assistant", content=[])
        of = {"response_id": self.id, "item_id": item["id"], "output_index": 0, "content_index": 0}
        empty = {"type": "audio", "transcript": ""}
        self._say({"type": "response.content_part.added", **of, "part": empty})
        self._conversation.durations[item["id"]] = 0
        said = await self._say_sound(of)
        self._say({"type": "response.output_audio.done", **of})
        done = {"type": "response.output_audio_transcript.done", **of, "transcript": said}
        self._say(done)
        part = {"type": "audio", "transcript": said}
        self._say({"type": "response.content_part.done", **of, "part": part})
        item["content"] = [{"type": "output_audio", "transcript": said}]
        self._close(item)

    async def _say_sound(self, of: Event) -> str:
        """Sound and words side by side; returns the words that were said."""
        script, loop = self._script, asyncio.get_running_loop()
        make = sound.spoken if script.sound == "speech" else sound.tone
        samples = make(script.reply_s)
        size = script.chunk_ms * sound.BYTES_PER_MS
        words, said, began = script.transcript.split(), "", loop.time()
        for at in range(0, len(samples), size):
            if script.pace:
                due = began + at / sound.BYTES_PER_MS / 1000 / script.pace
                await self._wait(due - loop.time())
            if self._cancelled:
                break
            upto = len(words) * (at + size) // len(samples)
            if delta := " ".join(words[:upto])[len(said) :]:
                said += delta
                self._say({"type": "response.output_audio_transcript.delta", **of, "delta": delta})
            piece = samples[at : at + size]
            self._conversation.durations[of["item_id"]] += len(piece) // sound.BYTES_PER_MS
            audio = base64.b64encode(piece).decode()
            self._say({"type": "response.output_audio.delta", **of, "delta": audio})
            self._spoken_s((at + len(piece)) / sound.BYTES_PER_MS / 1000)
        return said

    async def _wait(self, seconds: float) -> None:
        """Sleep; a cancel ends it. Always lets the connection read in between."""
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        try:
            await asyncio.wait_for(self._woken.wait(), seconds)
        except TimeoutError:
            return
