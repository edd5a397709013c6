import random

import pytest

from relayctl.wire.call_id import CallId
from relayctl.wire.route_token import Key, Route, mint
from signaling.calls import Calls
from signaling.fleet.control import Control
from signaling.fleet.location import Place, Where
from signaling.fleet.registry import Registry
from signaling.fleet.steering import Fleet, Ingress, Placement
from signaling.refusal import Refused
from tests.unit.signaling.fake_transceiver import (
    ANSWER,
    KEY,
    OFFER,
    SECRET,
    FakeTransceiver,
    configuration,
    error,
    fleet,
)

pytestmark = pytest.mark.anyio
SITE = Ingress("relay-a", (("203.0.113.10", 3478),))
FIRST = ("10.2.0.2", 5000)
SECOND = ("10.2.0.3", 5000)


async def core(
    *up: FakeTransceiver,
    down: tuple[FakeTransceiver, ...] = (),
    sites: tuple[Ingress, ...] = (SITE,),
) -> tuple[Calls, Registry]:
    """Calls over transceivers of which `down` fell silent after they were found ready."""
    clusters = configuration().routing()
    endpoints = [each.endpoint for each in (*up, *down)]
    before = Registry(Control(fleet(*up, *down)), endpoints, clusters)
    await before.refresh()
    calls = Calls(
        Control(fleet(*up)),
        before,
        lambda: Fleet(before.transceivers(), sites),
        {1: KEY},
        clusters,
        random.Random(1),
    )
    return calls, before


async def refused(attempt: object) -> Refused:
    with pytest.raises(Refused) as caught:
        await attempt  # type: ignore[misc]
    return caught.value


async def test_the_owner_is_found_by_the_id_alone() -> None:
    first, second = FakeTransceiver(FIRST), FakeTransceiver(SECOND, calls=9)
    calls, _ = await core(first, second)
    created = await calls.create(OFFER, "plain")
    replica, _ = await core(first, second)
    again = ANSWER.replace("o=- 1 1 ", "o=- 1 2 ")
    assert await replica.restart(created.call_id.render(), OFFER) == again
    endpoint, call = await replica.describe(created.call_id.render())
    assert (endpoint, call["state"]) == (FIRST, "connected")
    await replica.hangup(created.call_id.render())
    assert [method for method, _, _ in first.seen] == ["create", "restart", "describe", "end"]
    assert second.seen == []


@pytest.mark.parametrize(
    "token",
    [
        pytest.param(mint(Key(1, bytes(32)), Route(7, 0x0A020002, 5000, bytes(3))), id="forged"),
        pytest.param(
            mint(Key(2, KEY.secret), Route(7, 0x0A020002, 5000, bytes(3))), id="unknown_key"
        ),
        pytest.param(mint(KEY, Route(8, 0x0A020002, 5000, bytes(3))), id="unknown_cluster"),
        pytest.param(mint(KEY, Route(7, 0x7F000001, 5000, bytes(3))), id="not_allowed"),
        pytest.param(mint(KEY, Route(7, 0x0A020002, 80, bytes(3))), id="port_not_allowed"),
    ],
)
async def test_an_id_that_leads_nowhere_sends_nothing(token: str) -> None:
    fake = FakeTransceiver()
    calls, _ = await core(fake)
    answers = {
        str(await refused(calls.restart(CallId(token, SECRET).render(), OFFER))),
        str(await refused(calls.hangup("rtc_garbled"))),
    }
    assert len(answers) == 1  # nobody learns which check failed
    assert fake.seen == []


async def test_a_silent_transceiver_is_skipped_and_taken_out() -> None:
    idle, busy = FakeTransceiver(FIRST), FakeTransceiver(SECOND, calls=9)
    calls, registry = await core(busy, down=(idle,))
    created = await calls.create(OFFER, "plain")
    assert created.call_id.render() in busy.ids
    assert [each.endpoint for each in registry.transceivers() if each.ready] == [SECOND]


async def test_all_full() -> None:
    no = error(503, "overloaded", "no slot", **{"Retry-After": "9"})
    fakes = [FakeTransceiver(at, refusals={"create": no}) for at in (FIRST, SECOND)]
    calls, _ = await core(*fakes)
    first = await refused(calls.create(OFFER, "plain"))
    assert (first.status, first.code, first.retry_after_s) == (503, "all_full", 9)
    assert all(len(fake.seen) == 1 for fake in fakes)
    second = await refused(calls.create(OFFER, "plain"))  # known by now, nobody is asked
    assert (second.code, second.retry_after_s) == ("all_full", 5)
    assert all(len(fake.seen) == 1 for fake in fakes)


@pytest.mark.parametrize("reason", ["lateness", "draining", "half_open"])
async def test_who_refuses_is_passed_over(reason: str) -> None:
    no = error(503, reason, "not now", **{"Retry-After": "1"})
    refusing, other = FakeTransceiver(FIRST, refusals={"create": no}), FakeTransceiver(SECOND)
    other.calls = 9  # so the first is asked first
    calls, registry = await core(refusing, other)
    created = await calls.create(OFFER, "plain")
    assert created.call_id.render() in other.ids
    assert len(refusing.seen) == 1
    assert [each.endpoint for each in registry.transceivers() if each.ready] == [SECOND]


async def test_what_the_caller_is_to_blame_for_is_tried_once() -> None:
    no = error(429, "too_many_half_open", "20 calls wait", **{"Retry-After": "1"})
    fakes = [FakeTransceiver(at, refusals={"create": no}) for at in (FIRST, SECOND)]
    calls, registry = await core(*fakes)
    assert (await refused(calls.create(OFFER, "plain"))).status == 429
    assert sum(len(fake.seen) for fake in fakes) == 1
    assert all(each.ready for each in registry.transceivers())


async def test_a_bad_offer_is_tried_once() -> None:
    no = error(400, "bad_sdp", "line 4")
    fakes = [FakeTransceiver(at, refusals={"create": no}) for at in (FIRST, SECOND)]
    calls, _ = await core(*fakes)
    assert (await refused(calls.create(OFFER, "plain"))).status == 400
    assert sum(len(fake.seen) for fake in fakes) == 1


async def test_nobody_there() -> None:
    calls, _ = await core(down=(FakeTransceiver(FIRST),))
    gone = await refused(calls.create(OFFER, "plain"))
    assert (gone.status, gone.code, gone.retry_after_s) == (503, "no_transceiver", 1)
    calls, _ = await core()
    assert (await refused(calls.create(OFFER, "plain"))).code == "no_transceiver"
    calls, _ = await core(FakeTransceiver(), sites=())
    assert (await refused(calls.create(OFFER, "plain"))).code == "no_ingress"


async def test_ready_while_a_call_would_find_a_place() -> None:
    calls, registry = await core(FakeTransceiver())
    calls.ready()
    registry.out(FIRST)
    with pytest.raises(Refused, match="no transceiver is ready"):
        calls.ready()


async def test_the_owner_is_gone() -> None:
    fake = FakeTransceiver()
    calls, _ = await core(fake)
    text = (await calls.create(OFFER, "plain")).call_id.render()
    alone, _ = await core()
    for attempt in (alone.restart(text, OFFER), alone.hangup(text), alone.describe(text)):
        gone = await refused(attempt)
        assert (gone.status, gone.code) == (502, "owner_gone")


@pytest.mark.parametrize("verb", ["restart", "resume"])
async def test_an_owner_that_does_not_answer_gets_no_other_call(verb: str) -> None:
    first, second = FakeTransceiver(FIRST), FakeTransceiver(SECOND, calls=9)
    calls, _ = await core(first, second)
    old = (await calls.create(OFFER, "realtime", subject="anna")).call_id.render()
    calls, registry = await core(second, down=(first,))
    if verb == "restart":
        await refused(calls.restart(old, OFFER))
    else:
        await calls.create(OFFER, "realtime", subject="anna", resume=old)
    assert [t.endpoint for t in registry.transceivers() if t.ready] == [SECOND]


async def test_what_the_client_is_told_of_its_place() -> None:
    fake = FakeTransceiver()
    _, registry = await core(fake)
    placed: list[Placement] = []
    calls = Calls(
        Control(fleet(fake)),
        registry,
        lambda: Fleet(registry.transceivers(), (SITE,), places={7: Place(region="eu")}),
        {1: KEY},
        configuration().routing(),
        random.Random(1),
        placed.append,
    )
    created = await calls.create(OFFER, "plain", where=Where(region="eu", source="region"))
    steering = "location=region cluster=7 ingress=relay-a reason=nearest"
    assert created.headers == {
        "X-Ferryline-Ingress": "relay-a",
        "X-Ferryline-Steering": steering,
    }
    assert [placement.text for placement in placed] == [steering]


async def test_a_third_is_not_offered_what_two_refused() -> None:
    no = error(503, "lateness", "not now", **{"Retry-After": "1"})
    third = ("10.2.0.4", 5000)
    fakes = [FakeTransceiver(at, refusals={"create": no}) for at in (FIRST, SECOND, third)]
    calls, registry = await core(*fakes)
    told = await refused(calls.create(OFFER, "plain"))
    assert (told.code, "(lateness)" in str(told)) == ("no_transceiver", True)
    assert sum(len(fake.seen) for fake in fakes) == 2
    assert sorted(each.reason for each in registry.transceivers()) == ["", "lateness", "lateness"]
    assert sum(each.ready for each in registry.transceivers()) == 1


async def test_who_talks_nonsense_is_passed_over_and_stays() -> None:
    """A client's offer may be what makes it fail: that must not take the whole fleet out."""
    bad = FakeTransceiver(FIRST, refusals={"create": error(500, "internal_error", "a fault")})
    other = FakeTransceiver(SECOND, calls=9)
    calls, registry = await core(bad, other)
    created = await calls.create(OFFER, "plain")
    assert created.call_id.render() in other.ids
    assert all(each.ready for each in registry.transceivers())
    calls, _ = await core(bad)
    failed = await refused(calls.create(OFFER, "plain"))
    assert (failed.status, failed.code) == (502, "transceiver_error")


async def test_a_call_that_could_not_be_found_again_is_not_begun() -> None:
    """Route keys that differ would show with the first request about the call, much later."""
    elsewhere = FakeTransceiver(FIRST, key=Key(1, bytes(32)))
    calls, _ = await core(elsewhere)
    failed = await refused(calls.create(OFFER, "plain"))
    assert (failed.status, failed.code) == (502, "transceiver_error")
    assert "keys_file" in str(failed)


async def test_three_silent_ones_are_enough() -> None:
    ports = range(5000, 5006)
    silent = tuple(FakeTransceiver((FIRST[0], port)) for port in ports)
    calls, registry = await core(down=silent)
    assert (await refused(calls.create(OFFER, "plain"))).code == "no_transceiver"
    assert sum(not each.ready for each in registry.transceivers()) == 3


async def test_hang_up_names_the_subject() -> None:
    fake = FakeTransceiver()
    calls, _ = await core(fake)
    text = (await calls.create(OFFER, "plain", subject="a&b")).call_id.render()
    await calls.hangup(text, "a&b")
    assert fake.queries[-1] == {"subject": "a&b"}


async def old_call(calls: Calls) -> str:
    return (await calls.create(OFFER, "realtime", subject="anna")).call_id.render()


async def test_a_call_is_resumed_wherever_there_is_room() -> None:
    first, second = FakeTransceiver(FIRST), FakeTransceiver(SECOND, calls=9)
    calls, _ = await core(first, second)
    old = await old_call(calls)
    calls, _ = await core(second, down=(first,))
    await calls.create(OFFER, "realtime", subject="anna", resume=old)
    assert [body["resume"] for method, _, body in second.seen if method == "create"] == [old]


async def test_an_owner_that_lives_lets_go_of_the_call_first() -> None:
    fake = FakeTransceiver(FIRST)
    calls, _ = await core(fake)
    old = await old_call(calls)
    await calls.create(OFFER, "realtime", subject="anna", resume=old)
    assert [method for method, _, _ in fake.seen] == ["create", "end", "create"]
    assert fake.queries[1] == {"reason": "resumed", "subject": "anna"}


@pytest.mark.parametrize(
    ("status", "code"), [(404, "call_not_found"), (410, "call_ended"), (500, "internal_error")]
)
async def test_whatever_the_owner_says_the_record_decides(status: int, code: str) -> None:
    fake = FakeTransceiver(FIRST)
    calls, _ = await core(fake)
    old = await old_call(calls)
    fake.refusals["end"] = error(status, code, "no")
    await calls.create(OFFER, "realtime", subject="anna", resume=old)
    assert fake.seen[-1][2]["resume"] == old


async def test_a_call_that_cannot_be_kept_is_not_ended_for_nothing() -> None:
    fake = FakeTransceiver(FIRST)
    calls, _ = await core(fake)
    old = await old_call(calls)
    fake.refusals["end"] = error(502, "resume_unavailable", "off")
    told = await refused(calls.create(OFFER, "realtime", subject="anna", resume=old))
    assert (told.status, told.code) == (502, "resume_unavailable")
    assert [method for method, _, _ in fake.seen] == ["create", "end"]


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (404, "call_not_found"),
        (409, "already_resumed"),
        (410, "resume_expired"),
        (502, "resume_unavailable"),
    ],
)
async def test_a_resume_that_is_refused_is_not_tried_elsewhere(status: int, code: str) -> None:
    first, second = FakeTransceiver(FIRST), FakeTransceiver(SECOND)
    calls, _ = await core(first, second)
    old = await old_call(calls)
    for fake in (first, second):
        fake.seen.clear()
        fake.refusals["create"] = error(status, code, "no")
    told = await refused(calls.create(OFFER, "realtime", subject="anna", resume=old))
    assert (told.status, told.code) == (status, code)
    tried = [method for fake in (first, second) for method, _, _ in fake.seen]
    assert tried.count("create") == 1


async def test_a_garbled_id_is_resumed_by_nobody() -> None:
    fake = FakeTransceiver(FIRST)
    calls, _ = await core(fake)
    for text in ("x", CallId("A" * 24, SECRET).render()):
        told = await refused(calls.create(OFFER, "realtime", resume=text))
        assert (told.status, told.code) == (404, "call_not_found")
    assert fake.seen == []
