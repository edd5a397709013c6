import functools
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from openai.types.beta.realtime import SessionCreateResponse
from openai.types.realtime import ClientSecretCreateResponse

from signaling.access.api_keys import digest_of
from signaling.session import MAX_DEPTH
from tests.unit.signaling.fake_transceiver import CONFIG, OFFER, FakeTransceiver, signaling

pytestmark = pytest.mark.anyio
KEY = "sk-fl-of-the-shop"
KEYED = CONFIG + f'[[api_key]]\nsubject = "shop"\nsha256 = "{digest_of(KEY).hex()}"\n'
SECRETS, SESSIONS, CALLS = (
    f"/v1/realtime/{name}" for name in ("client_secrets", "sessions", "calls")
)
SDP = {"Content-Type": "application/sdp"}
SESSION: dict[str, Any] = {
    "type": "realtime",
    "model": "gpt-realtime",
    "instructions": "be brief",
    "output_modalities": ["audio"],
    "audio": {
        "input": {"turn_detection": {"type": "server_vad", "silence_duration_ms": 300}},
        "output": {"voice": "marin", "format": {"type": "audio/pcm", "rate": 24000}},
    },
    "tools": [{"type": "function", "name": "f", "parameters": {"type": "object"}}],
    "tool_choice": "auto",
    "max_output_tokens": "inf",
}
DEEP: dict[str, Any] = functools.reduce(lambda inner, _: {"x": inner}, range(MAX_DEPTH + 1), {})
BETA: dict[str, Any] = {"model": "m", "modalities": ["text", "audio"], "voice": "alloy"}


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


async def ask(body: Any, path: str = SECRETS, config: str = KEYED) -> httpx.Response:
    _, client = await signaling(FakeTransceiver(), config=config)
    return await client.post(path, json=body, headers=bearer(KEY))


def refusal(reply: httpx.Response) -> tuple[int, str, str | None]:
    error = reply.json()["error"]
    assert error["message"]
    return reply.status_code, error["code"], error["param"]


async def test_what_openai_reads() -> None:
    reply = await ask(
        {"expires_after": {"anchor": "created_at", "seconds": 60}, "session": SESSION}
    )
    assert reply.status_code == 200
    assert reply.headers["cache-control"] == "no-store"
    answer = ClientSecretCreateResponse.model_validate(reply.json(), strict=True)
    assert answer.value.startswith("ek_")
    assert len(answer.value) == 35
    shown = reply.json()["session"]
    assert shown["object"] == "realtime.session"
    assert shown["id"].startswith("sess_")
    assert {name: shown[name] for name in SESSION} == SESSION


async def test_a_transcription_session() -> None:
    session = {"type": "transcription", "audio": {"input": {"transcription": {"model": "w"}}}}
    reply = await ask({"session": session})
    answer = ClientSecretCreateResponse.model_validate(reply.json(), strict=True)
    assert answer.session.object == "realtime.transcription_session"


@pytest.mark.parametrize("body", [None, b"", b"{}", b'{"session": {}, "expires_after": null}'])
async def test_nothing_need_be_asked(body: bytes | None) -> None:
    _, client = await signaling(FakeTransceiver(), config=KEYED)
    kind = {"Content-Type": "application/json"} if body else {}
    reply = await client.post(SECRETS, content=body, headers=bearer(KEY) | kind)
    assert reply.status_code == 200
    answer = ClientSecretCreateResponse.model_validate(reply.json(), strict=True)
    assert answer.session.type == "realtime"


async def test_what_an_older_client_reads() -> None:
    reply = await ask(BETA | {"client_secret": {"expires_after": {"seconds": 10}}}, SESSIONS)
    answer = SessionCreateResponse.model_validate(reply.json(), strict=True)
    assert answer.client_secret.value.startswith("ek_")
    assert (answer.voice, answer.modalities) == ("alloy", ["text", "audio"])
    assert reply.json()["object"] == "realtime.session"
    assert reply.json()["model"] == "m"


async def test_a_browser_begins_a_call_with_it_and_cannot_change_its_session() -> None:
    fake = FakeTransceiver()
    _, client = await signaling(fake, config=KEYED)
    reply = await client.post(SECRETS, json={"session": SESSION}, headers=bearer(KEY))
    key = reply.json()["value"]
    begun = await client.post(f"{CALLS}?model=other", content=OFFER, headers=SDP | bearer(key))
    assert begun.status_code == 201
    asked = fake.seen[-1][2]
    assert (asked["subject"], asked["dialect"]) == ("shop", "realtime")
    assert asked["session"] == SESSION


async def test_calls_of_an_older_client_speak_beta() -> None:
    fake = FakeTransceiver()
    _, client = await signaling(fake, config=KEYED)
    reply = await client.post(SESSIONS, json=BETA, headers=bearer(KEY))
    key = reply.json()["client_secret"]["value"]
    await client.post(CALLS, content=OFFER, headers=SDP | bearer(key))
    assert fake.seen[-1][2]["dialect"] == "realtime-beta"
    assert fake.seen[-1][2]["session"] == BETA


@pytest.mark.parametrize("path", [SECRETS, SESSIONS])
async def test_only_with_an_api_key(path: str) -> None:
    _, client = await signaling(FakeTransceiver(), config=KEYED)
    reply = await client.post(path, content=b"\xff" * 100_000)  # asked for before all else
    assert refusal(reply) == (401, "missing_api_key", None)
    assert reply.headers["www-authenticate"] == "Bearer"
    reply = await client.post(path, headers=bearer("sk-fl-other"))
    assert refusal(reply) == (401, "invalid_api_key", None)
    assert reply.headers["www-authenticate"] == "Bearer"
    key = (await client.post(SECRETS, headers=bearer(KEY))).json()["value"]
    assert refusal(await client.post(path, headers=bearer(key))) == (403, "api_key_needed", None)
    assert (await client.get(path)).status_code == 405


async def test_open_access_needs_none() -> None:
    _, client = await signaling(FakeTransceiver())
    reply = await client.post(SECRETS, json={"session": SESSION})
    assert reply.status_code == 200


async def test_new_keys_are_limited() -> None:
    _, client = await signaling(FakeTransceiver(), config=KEYED + "offers_per_minute = 1\n")
    assert (await client.post(SECRETS, headers=bearer(KEY))).status_code == 200
    reply = await client.post(SECRETS, headers=bearer(KEY))
    assert refusal(reply) == (429, "rate_limited", None)
    assert reply.headers["retry-after"] == "60"


async def test_a_preflight_needs_no_key() -> None:
    _, client = await signaling(FakeTransceiver(), config=KEYED)
    for path in (SECRETS, CALLS):
        reply = await client.options(
            path,
            headers={
                "Origin": "https://talk.example",
                "Access-Control-Request-Method": "POST",
                "Access-Control-Request-Headers": "authorization,content-type",
            },
        )
        assert reply.status_code == 200
        assert reply.headers["access-control-allow-origin"] == "*"
    reply = await client.post(CALLS, headers={"Origin": "https://talk.example"})
    assert reply.status_code == 401  # and a page can read why
    assert reply.headers["access-control-allow-origin"] == "*"


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ([], None),
        ({"expire_after": {}}, None),
        ({"session": []}, "session"),
        ({"session": DEEP}, "session"),
        ({"session": {"x": 10**309}}, "session"),
        ({"session": {"type": "x"}}, "session.type"),
        ({"session": {"type": ["realtime"]}}, "session.type"),
        ({"expires_after": 60}, "expires_after"),
        ({"expires_after": {"anchor": "now"}}, "expires_after.anchor"),
        *(
            ({"expires_after": {"seconds": seconds}}, "expires_after.seconds")
            for seconds in (9, 7201, True, "60", 60.5, None)
        ),
    ],
)
async def test_a_bad_request_names_its_part(body: Any, param: str | None) -> None:
    assert refusal(await ask(body)) == (400, "bad_json", param)


@pytest.mark.parametrize(
    "body",
    [b"{", b"\xff", b"[" * 60_000, b'{"session": {"x": NaN}}', b'{"session": {"x": "\\ud800"}}'],
)
async def test_what_is_no_json(body: bytes) -> None:
    _, client = await signaling(FakeTransceiver(), config=KEYED)
    headers = bearer(KEY) | {"Content-Type": "application/json"}
    assert refusal(await client.post(SECRETS, content=body, headers=headers))[:2] == (
        400,
        "bad_json",
    )
    assert refusal(await client.post(SESSIONS, content=body, headers=headers))[:2] == (
        400,
        "bad_json",
    )


async def test_too_much_and_of_another_kind() -> None:
    assert refusal(await ask({"session": {"instructions": "x" * 70_000}}))[0] == 413
    _, client = await signaling(FakeTransceiver(), config=KEYED)
    reply = await client.post(SECRETS, content=b"{}", headers=bearer(KEY) | SDP)
    assert refusal(reply) == (415, "wrong_content_type", "Content-Type")


@settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.dictionaries(
        st.sampled_from(["session", "expires_after", "client_secret", "x"]),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(),
            lambda inner: (
                st.lists(inner)
                | st.dictionaries(
                    st.sampled_from(["type", "seconds", "anchor", "expires_after", "id"]), inner
                )
            ),
            max_leaves=6,
        ),
    )
)
async def test_no_json_makes_a_500(body: Any) -> None:
    for path in (SECRETS, SESSIONS):
        assert (await ask(body, path)).status_code in (200, 400, 429)
