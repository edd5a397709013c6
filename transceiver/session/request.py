"""What a response is asked to be: `response.create`, or the end of a turn. Pure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from transceiver.session import items
from transceiver.session.conversation import Conversation
from transceiver.session.fields import Refusal, invalid, mapping, text
from transceiver.session.items import Item
from transceiver.session.settings import Modality, Settings, is_max_tokens, is_modalities

MAX_INPUT = 100  # items
MAX_METADATA = 16  # pairs, of at most 64 and 512 characters


@dataclass(frozen=True, slots=True)
class Request:
    """One response's own settings, and what it answers."""

    modality: Modality  # "audio" only to a spoken turn: nothing here could speak what is written
    max_output_tokens: int | str
    audio: dict[str, Any]  # `audio.output` as it is shown: format, voice
    turn_item_id: str | None = None  # of the spoken turn to answer
    text: str | None = None  # or the message
    metadata: dict[str, str] | None = None
    in_conversation: bool = True

    @classmethod
    def read(
        cls,
        asked: object,
        settings: Settings,
        conversation: Conversation,
        new_id: Callable[[], str],
        turn_item_id: str | None = None,
    ) -> "Request":
        """From the `response` of a client; None asks for nothing special. `turn_item_id`: of the
        turn that has just ended and is to be answered, whatever else was said. What the session's
        settings say otherwise, and tools, instructions and the like, are for a model: taken and
        not looked at. Raises `Refusal`."""
        given = mapping(asked if asked is not None else {}, "response")
        session = settings.shown
        modalities = _or(given.get("output_modalities"), session["output_modalities"])
        if not is_modalities(modalities):
            raise invalid("response.output_modalities", modalities, "['audio'] or ['text']")
        max_tokens = _or(given.get("max_output_tokens"), session["max_output_tokens"])
        if not is_max_tokens(max_tokens):
            raise invalid("response.max_output_tokens", max_tokens, "an integer from 1, or 'inf'")
        target = _or(given.get("conversation"), "auto")
        if target not in ("auto", "none"):
            raise invalid("response.conversation", target, "'auto' or 'none'")
        asked_items = given.get("input")
        if turn_item_id is not None:
            question: tuple[str | None, str | None] = turn_item_id, None
        elif asked_items is None:
            question = _question(conversation.newest_first())
        else:
            question = _question(_input(asked_items, conversation, new_id))
        return cls(
            modality="audio" if "audio" in modalities and question[0] is not None else "text",
            max_output_tokens=max_tokens,
            audio=_audio(given.get("audio"), session["audio"]["output"]),
            turn_item_id=question[0],
            text=question[1],
            metadata=_metadata(given.get("metadata")),
            in_conversation=target == "auto",
        )


def _or(value: Any, default: Any) -> Any:
    return default if value is None else value


def _question(newest_first: list[Item]) -> tuple[str | None, str | None]:
    """The spoken turn or the text that came last; neither if nobody has said anything."""
    for item in newest_first:
        if item["type"] == "function_call_output" or item.get("role") == "user":
            text = items.written(item)
            return (item["id"], None) if text is None else (None, text)
    return None, None


def _input(asked: object, conversation: Conversation, new_id: Callable[[], str]) -> list[Item]:
    """The items to answer instead of the conversation's, newest first."""
    if not isinstance(asked, list) or len(asked) > MAX_INPUT:
        raise invalid("response.input", asked, f"a list of at most {MAX_INPUT} items")
    read = []
    for at, entry in enumerate(asked):
        param = f"response.input[{at}]"
        if mapping(entry, param).get("type") == "item_reference":
            read.append(conversation.get(text(entry, "id", f"{param}."), f"{param}.id"))
        else:
            read.append(items.read(entry, new_id(), param))
    return read[::-1]


def _audio(asked: object, session: Mapping[str, Any]) -> dict[str, Any]:
    """Format and voice; a voice of one's own is shown by its id."""
    output = mapping(_or(asked, {}), "response.audio").get("output")
    both = {**session, **mapping(_or(output, {}), "response.audio.output")}
    voice = both["voice"].get("id") if isinstance(both["voice"], dict) else both["voice"]
    if not isinstance(voice, str):
        raise invalid("response.audio.output.voice", voice, "a string, or an object with an id")
    return {
        "format": mapping(both["format"], "response.audio.output.format"),
        "voice": voice,
    }


def _metadata(asked: object) -> dict[str, str] | None:
    if asked is None:
        return None
    given = mapping(asked, "response.metadata")
    fits = all(isinstance(v, str) and len(k) <= 64 and len(v) <= 512 for k, v in given.items())
    if not fits or len(given) > MAX_METADATA:
        detail = f"want at most {MAX_METADATA} strings: names of 64, values of 512 characters"
        raise Refusal("invalid_value", f"response.metadata: {detail}", "response.metadata")
    return dict(given)
