"""A transceiver dies; its calls are carried on by another one, from their records in Redis."""

import json
import signal
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import redis as redis_client

from relayctl.wire.call_id import parse
from tests.judges import openai_types
from tests.lab.conftest import PREFIX
from tests.lab.fleet import Fleet, fleet, until
from transceiver.resume.record import key_of

PORT = 24491
MODEL = {"url": f"ws://127.0.0.1:{PORT}/v1/realtime", "model": "m"}
SECRET_WORD = "rumpelstiltskin"
SESSION = {
    "type": "session.update",
    "session": {
        "type": "realtime",
        "instructions": f"the word is {SECRET_WORD}",
        "output_modalities": ["text"],
        "audio": {"input": {"turn_detection": {"type": "server_vad", "silence_duration_ms": 400}}},
    },
}


def item(**fields: Any) -> dict[str, Any]:
    return {"type": "conversation.item.create", "item": fields}


def message(role: str, kind: str, text: str) -> dict[str, Any]:
    return item(type="message", role=role, content=[{"type": kind, "text": text}])


WRITTEN = [
    SESSION,
    message("system", "input_text", "be brief"),
    message("user", "input_text", f"who is {SECRET_WORD}? ünïcødé"),
    {"type": "response.create"},
    item(type="function_call", call_id="call_1", name="look_up", arguments='{"a": 1}'),
    item(type="function_call_output", call_id="call_1", output='{"b": 2}'),
    message("user", "input_text", "thank you"),
]
ANSWERS = ("session.updated", "conversation.item.done", "response.done", "error")
KEPT = ("instructions", "output_modalities", "tools", "tool_choice", "max_output_tokens")


@pytest.fixture(scope="module", params=["parrot", "realtime"])
def place(request: pytest.FixtureRequest) -> Iterator[Fleet]:
    backend = request.param
    model = MODEL if backend == "realtime" else None
    with fleet(f"{PREFIX}r", backend=backend, model=model) as place:
        if backend == "realtime":
            for node in place.lab.transceivers:
                options = ["--host", "127.0.0.1", "--port", str(PORT)]
                node.python("realtime-server", "tests.realtime_server", *options)
        yield place


def client(place: Fleet, *options: str, resume: str = "") -> dict[str, Any]:
    site = place.services.site
    url = site.calls_url + (f"?resume={resume}" if resume else "")
    command = [sys.executable, "-m", "tests.lab.correspondent", "--url", url]
    command += ["--host", site.client_host, *options]
    done = site.client.run(command, timeout_s=120, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def write(place: Fleet) -> dict[str, Any]:
    """A client who has written, and is gone; the record of its call is there."""
    told = client(place, "--say", json.dumps(WRITTEN), "--until", *ANSWERS)
    assert told["status"] == 201
    assert "error" not in [event["type"] for event in told["events"]]
    return told


def kill_and_replace(place: Fleet, name: str = "transceiver") -> None:
    """Whoever has the calls dies; another one is there, and signaling knows of it alone."""
    place.start_another()
    place.services.programs.pop(name).kill()
    until(lambda: len(place.registered()) == 1)


def items(told: dict[str, Any]) -> list[dict[str, Any]]:
    """Of the conversation, as text: role, kind and words."""
    found: dict[str, dict[str, Any]] = {}
    for event in told["events"]:
        if event["type"] == "conversation.item.done":
            found[event["item"]["id"]] = event["item"]
    return list(found.values())


def as_text(each: dict[str, Any]) -> tuple[Any, ...]:
    if each["type"] != "message":
        return each["type"], each.get("name"), each.get("arguments"), each.get("output")
    (part,) = each["content"]
    return each["role"], part.get("text") or part.get("transcript")


def session(told: dict[str, Any]) -> dict[str, Any]:
    shown: dict[str, Any] = [event for event in told["events"] if "session" in event][-1]
    return dict(shown["session"])


@pytest.fixture(scope="module")
def old(place: Fleet) -> dict[str, Any]:
    """A call whose transceiver was killed."""
    told = write(place)
    with place.redis.client() as redis:
        until(lambda: redis.exists(key_of(parse(told["id"]))))
    kill_and_replace(place)
    return told


@pytest.fixture(scope="module")
def new(place: Fleet, old: dict[str, Any]) -> dict[str, Any]:
    return client(place, resume=old["id"])


def test_the_conversation_is_there_again(new: dict[str, Any], old: dict[str, Any]) -> None:
    assert new["status"] == 201
    assert new["id"] != old["id"]
    assert len(items(old)) == len(WRITTEN) - 1
    assert [as_text(each) for each in items(new)] == [as_text(each) for each in items(old)]
    kinds = [event["type"] for event in new["events"]]
    pairs = ["conversation.item.added", "conversation.item.done"] * len(items(old))
    assert kinds == ["session.created", *pairs]
    for event in new["events"]:
        assert openai_types.faults(event) == []
    assert new["heard"] > 0


def test_the_settings_are_the_old_ones(new: dict[str, Any], old: dict[str, Any]) -> None:
    assert {key: session(new).get(key) for key in KEPT} == {
        key: session(old).get(key) for key in KEPT
    }
    hears = session(new)["audio"]["input"]["turn_detection"]
    assert hears == session(old)["audio"]["input"]["turn_detection"]


def test_each_id_is_resumed_once_and_the_new_one_in_its_turn(
    place: Fleet, new: dict[str, Any], old: dict[str, Any]
) -> None:
    again = client(place, resume=old["id"])
    assert (again["status"], again["code"]) == (409, "already_resumed")
    third = client(place, "--goodbye", resume=new["id"])  # the owner of `new` lives
    assert [as_text(each) for each in items(third)] == [as_text(each) for each in items(old)]
    gone = client(place, resume=third["id"])
    assert (gone["status"], gone["code"]) == (410, "resume_expired")


def test_no_plain_text_in_redis_nor_in_logs(place: Fleet, new: dict[str, Any]) -> None:
    told = write(place)
    call_id = parse(told["id"])
    with place.redis.client() as redis:
        until(lambda: redis.exists(key_of(call_id)))
        assert all(call_id.secret not in str(name) for name in redis.scan_iter(match="*"))
    with redis_client.Redis.from_url(place.redis.unix_url) as raw:
        sealed = raw.get(key_of(call_id))
        assert isinstance(sealed, bytes)
        assert SECRET_WORD.encode() not in sealed
        assert b"thank" not in sealed
        assert raw.ttl(key_of(call_id)) in range(500, 601)
    for log in place.lab.directory.glob("*.log"):
        text = log.read_text()
        assert call_id.secret not in text
        assert SECRET_WORD not in text


def test_a_record_that_was_tampered_with_is_none(place: Fleet, new: dict[str, Any]) -> None:
    told = write(place)
    key = key_of(parse(told["id"]))
    with redis_client.Redis.from_url(place.redis.unix_url) as raw:
        until(lambda: raw.exists(key))
        place.services.programs["another"].process.send_signal(signal.SIGSTOP)
        try:
            sealed = raw.get(key)
            assert isinstance(sealed, bytes)
            raw.set(key, sealed[:-1] + bytes([sealed[-1] ^ 1]), ex=600)
            place.services.start_transceiver()
            until(lambda: len(place.registered()) == 1)
            refused = client(place, resume=told["id"])
            assert (refused["status"], refused["code"]) == (410, "resume_expired")
            raw.set(key, sealed, ex=600)  # the claim was not burnt
            assert client(place, resume=told["id"])["status"] == 201
        finally:
            place.services.programs["another"].process.send_signal(signal.SIGCONT)


def test_garbled_ids_are_nobodys(place: Fleet, new: dict[str, Any]) -> None:
    forged = "rtc_" + "A" * 24 + "_" + "B" * 22
    for text in ("nonsense", forged):
        refused = client(place, resume=text)
        assert (refused["status"], refused["code"]) == (404, "call_not_found")
    other = new["id"][:-1] + ("A" if new["id"][-1] != "A" else "B")
    refused = client(place, resume=other)
    assert (refused["status"], refused["code"]) == (410, "resume_expired")


@pytest.mark.parametrize("fault", ["kill", "hang"])
def test_without_redis_calls_go_on_and_resumes_wait(place: Fleet, fault: str) -> None:
    told = write(place)
    getattr(place.redis, fault)()
    try:
        assert write(place)["heard"] > 0
        refused = client(place, resume=told["id"])
        assert (refused["status"], refused["code"]) == (502, "resume_unavailable")
    finally:
        if fault == "kill":
            place.redis.start()
        else:
            place.redis.go_on()
    assert write(place)["heard"] > 0
    if fault == "hang":  # the record is still there, and so is its call
        assert client(place, resume=told["id"])["status"] == 201
