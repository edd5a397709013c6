"""The events of a conversation in their order, as parts that scripts put together.

Deltas, rate limits and transcripts of what was heard come when they please: they are in no part.
"""

Part = tuple[str, ...]

FREE = frozenset(
    {
        "rate_limits.updated",
        "response.output_audio_transcript.delta",
        "response.output_text.delta",
        "response.function_call_arguments.delta",
        "conversation.item.input_audio_transcription.delta",
        "conversation.item.input_audio_transcription.completed",
        "conversation.item.input_audio_transcription.failed",
    }
)

CREATED: Part = ("session.created",)
UPDATED: Part = ("session.updated",)
ERROR: Part = ("error",)

ITEM: Part = ("conversation.item.added", "conversation.item.done")
COMMITTED: Part = ("input_audio_buffer.committed", *ITEM)
SPEECH: Part = ("input_audio_buffer.speech_started", "input_audio_buffer.speech_stopped")
TURN: Part = (*SPEECH, *COMMITTED)

BEGUN: Part = (
    "response.created",
    "response.output_item.added",
    "conversation.item.added",
    "response.content_part.added",
)
STARTED: Part = ("output_audio_buffer.started",)
AUDIO_DONE: Part = (
    "response.output_audio.done",
    "response.output_audio_transcript.done",
    "response.content_part.done",
    "response.output_item.done",
    "conversation.item.done",
    "response.done",
)
HEARD: Part = (*STARTED, *AUDIO_DONE)
STOPPED: Part = ("output_audio_buffer.stopped",)
SPOKEN: Part = (*BEGUN, *HEARD, *STOPPED)
WRITTEN: Part = (
    *BEGUN,
    "response.output_text.done",
    "response.content_part.done",
    "response.output_item.done",
    "conversation.item.done",
    "response.done",
)

CUT: Part = ("output_audio_buffer.cleared", "conversation.item.truncated")
BARGE_IN: Part = ("input_audio_buffer.speech_started", *CUT)
REST_OF_TURN: Part = ("input_audio_buffer.speech_stopped", *COMMITTED)


def beta(kinds: Part) -> Part:
    """As a client of the beta API is told them."""
    return tuple(_BETA.get(kind, kind) for kind in kinds if kind not in _UNKNOWN_TO_BETA)


_BETA = {
    "conversation.item.added": "conversation.item.created",
    "response.output_audio.done": "response.audio.done",
    "response.output_audio_transcript.done": "response.audio_transcript.done",
    "response.output_audio_transcript.delta": "response.audio_transcript.delta",
    "response.output_text.delta": "response.text.delta",
    "response.output_text.done": "response.text.done",
}
_UNKNOWN_TO_BETA = frozenset({"conversation.item.done"})
