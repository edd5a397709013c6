"""A few of the scripted conversations, so that the core cannot lose its manners unnoticed."""

from collections.abc import Sequence

import pytest

from tests.conversations import scripted
from tests.conversations.scripted import Played
from tests.conversations.scripts.table import plans
from tests.judges import agents_union

CHOSEN = (
    "parrot turns.one ga default 0",
    "parrot turns.push_to_talk ga default 0",
    "parrot turns.resumed ga default 0",
    "parrot replies.second_create ga default 0",
    "parrot replies.stop_button ga default 0",
    "parrot interruptions.in_the_middle ga default 0",
    "parrot interruptions.in_the_middle beta default 0",
    "parrot sessions.items ga default 0",
    "echo sessions.its_end ga default 0",
    "echo sessions.updates_only ga default 0",
    "realtime upstream.tool ga default 0",
    "realtime upstream.interrupted ga default 0",
)


@pytest.fixture(scope="module")
def played() -> Sequence[Played]:
    found = {plan.name: plan for plan in plans()}
    return [scripted.play(found[name]) for name in CHOSEN]


def test_they_go_as_their_scripts_say(played: Sequence[Played]) -> None:
    assert {each.plan.name: scripted.disorder(each) for each in played} == dict.fromkeys(CHOSEN, "")


def test_every_event_is_one_that_clients_can_read(played: Sequence[Played]) -> None:
    if reason := agents_union.unavailable():
        pytest.skip(reason)
    assert scripted.invalid(played) == []


def test_an_event_that_lacks_a_field_is_found(played: Sequence[Played]) -> None:
    if reason := agents_union.unavailable():
        pytest.skip(reason)
    whole = played[0]
    harmed = [{k: v for k, v in event.items() if k != "event_id"} for event in whole.events]
    faults = scripted.invalid([Played(whole.plan, harmed)])
    kinds = {event["type"] for event in harmed}
    assert {kind for kind in kinds if any(f" {kind}: " in fault for fault in faults)} == kinds


def test_events_that_change_places_are_found(played: Sequence[Played]) -> None:
    whole = played[0]
    for number in range(len(whole.events) - 1):
        events = list(whole.events)
        events[number : number + 2] = events[number + 1], events[number]
        assert scripted.disorder(Played(whole.plan, events)), whole.events[number]["type"]
