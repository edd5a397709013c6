"""An upstream server that speaks the beta API, in the names that we use. Pure.

The tables are the dialect's (`dialects/beta.py`), read from the other side: here we are the client.
"""

from transceiver.dialects.beta import EVENTS, from_beta, to_beta
from transceiver.events import Event

_OURS = {beta: ours for ours, beta in EVENTS.items()}
_DONE = ("completed", "incomplete")  # states of an item that nothing is added to


def up(event: Event) -> Event:
    """An event of ours as the server reads it."""
    if not isinstance(event.get("type"), str):
        return event
    told = to_beta(event)
    response = told.get("response")
    if isinstance(response, dict) and "max_output_tokens" in response:
        limit = response.pop("max_output_tokens")
        told["response"] = {**response, "max_response_output_tokens": limit}
    return told


def down(event: Event) -> list[Event]:
    """What the server says; where we have two events for one, both."""
    kind = event["type"]
    told = from_beta({**event, "type": _OURS.get(kind, kind)})
    response, item = told.get("response"), told.get("item")
    if isinstance(response, dict) and isinstance(response.get("output"), list):
        output = [from_beta({"item": made})["item"] for made in response["output"]]
        told["response"] = {**response, "output": output}
    status = item.get("status") if isinstance(item, dict) else None
    is_whole = kind == "conversation.item.created" and status in _DONE
    if kind == "response.output_item.done" or is_whole:
        previous = told.get("previous_item_id")
        done = {"type": "conversation.item.done", "previous_item_id": previous, "item": item}
        return [told, done]
    return [told]
