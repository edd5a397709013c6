from typing import Any

import pytest
from starlette.requests import HTTPConnection

from signaling.access.access import FAILED_PER_MINUTE, Access, Caller
from signaling.access.api_keys import ApiKey, ApiKeys, digest_of
from signaling.access.config import Rules
from signaling.access.ephemeral_keys import EphemeralKey, InMemory, KeysUnavailable
from signaling.refusal import Refused

pytestmark = pytest.mark.anyio
SHOP, BANK = "sk-fl-shop", "sk-fl-bank"
SESSION = {"instructions": "be brief"}


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def access(
    clock: Clock | None = None,
    *,
    open: bool = False,
    client_hangup: bool = False,
    per_address: int = 0,
    per_minute: int = 0,
    store: InMemory | None = None,
) -> Access:
    keys = [ApiKey("shop", digest_of(SHOP), per_minute), ApiKey("bank", digest_of(BANK), 0)]
    numbers = iter(range(1000))
    clock = clock or Clock()
    return Access(
        Rules(ApiKeys(keys), open, client_hangup, per_address),
        store,
        lambda request: request.client.host if request.client else "",
        clock=clock,
        wall=lambda: clock.now + 1_800_000_000,
        random_bytes=lambda size: next(numbers).to_bytes(size, "big"),
    )


def request(
    key: str | None = None, host: str = "192.0.2.1", subprotocols: tuple[str, ...] = ()
) -> HTTPConnection:
    header = f"Bearer {key}" if key is not None else ""
    return http(header, host, subprotocols)


def http(
    authorization: str, host: str = "192.0.2.1", subprotocols: tuple[str, ...] = ()
) -> HTTPConnection:
    headers = [(b"authorization", authorization.encode("latin-1"))] if authorization else []
    scope: dict[str, Any] = {"type": "http", "headers": headers, "client": (host, 1)}
    if subprotocols:
        scope |= {"type": "websocket", "subprotocols": list(subprotocols)}
    return HTTPConnection(scope)


async def refused(waiting: Any) -> tuple[int, str]:
    with pytest.raises(Refused) as caught:
        await waiting
    return caught.value.status, caught.value.code


async def test_an_api_key_begins_and_manages() -> None:
    guard = access()
    assert await guard.start(request(SHOP)) == Caller("shop")
    assert await guard.manage(request(BANK)) == Caller("bank")
    assert await guard.hang_up(request(BANK)) == Caller("bank")


@pytest.mark.parametrize("header", [f"bearer {SHOP}", f"BEARER  {SHOP} "])
async def test_how_a_header_may_be_written(header: str) -> None:
    assert await access().start(http(header)) == Caller("shop")


async def test_a_websocket_may_show_it_as_a_subprotocol() -> None:
    protocols = ("realtime", f"openai-insecure-api-key.{SHOP}")
    assert await access().manage(request(subprotocols=protocols)) == Caller("shop")
    assert await access().manage(request(BANK, subprotocols=protocols)) == Caller("bank")


async def test_without_a_key() -> None:
    guard = access()
    for asked in (guard.start, guard.manage, guard.hang_up):
        for shown in (request(), http("Bearer"), http("Bearer "), http(f"Basic {SHOP}")):
            assert await refused(asked(shown)) == (401, "missing_api_key")


@pytest.mark.parametrize(
    "key", ["sk-fl-other", SHOP + "x", SHOP[:-1], "ek_none", "\xff", "x" * 9999]
)
async def test_with_a_wrong_key(key: str) -> None:
    assert await refused(access().start(request(key))) == (401, "invalid_api_key")


async def test_an_ephemeral_key_begins_calls_with_its_session_until_it_expires() -> None:
    clock = Clock()
    guard = access(clock)
    minted = await guard.mint(request(SHOP), SESSION, 60, beta=True)
    assert minted.text.startswith("ek_")
    assert minted.expires == 1_800_001_060
    assert minted.text not in repr(minted)
    for _ in range(2):
        assert await guard.start(request(minted.text)) == Caller("shop", SESSION, beta=True)
    clock.now += 60
    assert await refused(guard.start(request(minted.text))) == (401, "invalid_api_key")


async def test_an_ephemeral_key_manages_nothing() -> None:
    guard = access()
    key = (await guard.mint(request(SHOP), SESSION, 60)).text
    for waiting in (guard.manage(request(key)), guard.hang_up(request(key))):
        assert await refused(waiting) == (403, "api_key_needed")
    assert await refused(guard.mint(request(key), {}, 60)) == (403, "api_key_needed")


async def test_an_ephemeral_key_hangs_up_where_that_is_allowed() -> None:
    guard = access(client_hangup=True)
    key = (await guard.mint(request(SHOP), SESSION, 60)).text
    assert (await guard.hang_up(request(key))).subject == "shop"
    assert await refused(guard.hang_up(request("ek_none"))) == (401, "invalid_api_key")
    assert await refused(guard.hang_up(request())) == (401, "missing_api_key")


async def test_keys_of_a_subject_that_is_gone_are_no_keys() -> None:
    store = InMemory()
    await store.put("ek_old", EphemeralKey("gone", 2_000_000_000), 0)
    await store.put("ek_open", EphemeralKey("", 2_000_000_000), 0)
    guard = access(store=store)
    for key in ("ek_old", "ek_open"):
        assert await refused(guard.start(request(key))) == (401, "invalid_api_key")


async def test_open_access_asks_nobody_and_knows_whom_it_knows() -> None:
    guard = access(open=True, client_hangup=True)
    for shown in (request(), request("dummy"), request("ek_none")):
        for asked in (guard.start, guard.manage, guard.hang_up):
            assert await asked(shown) == Caller()
    minted = await guard.mint(request(), SESSION, 60)
    assert await guard.start(request(minted.text)) == Caller("", SESSION)
    assert await guard.manage(request(SHOP)) == Caller("shop")


async def test_a_subject_has_so_many_offers_a_minute_by_whatever_key() -> None:
    clock = Clock()
    guard = access(clock, per_minute=3)
    key = (await guard.mint(request(SHOP), SESSION, 600)).text
    for shown in (request(SHOP), request(key), request(SHOP, "192.0.2.2")):
        await guard.start(shown)
    for shown in (request(SHOP), request(key)):
        with pytest.raises(Refused, match="more than 3 of these with this key") as caught:
            await guard.start(shown)
        assert (caught.value.status, caught.value.code) == (429, "rate_limited")
        assert caught.value.retry_after_s == 20
    await guard.start(request(BANK))
    await guard.manage(request(SHOP))  # calls under way can be ended
    clock.now += 20
    await guard.start(request(key))


async def test_so_many_new_keys_a_minute() -> None:
    guard = access(per_minute=2)
    for _ in range(2):
        await guard.mint(request(SHOP), {}, 60)
    assert await refused(guard.mint(request(SHOP), {}, 60)) == (429, "rate_limited")
    await guard.start(request(SHOP))


async def test_an_address_without_an_api_key_has_so_many_offers_a_minute() -> None:
    guard = access(open=True, per_address=2)
    for _ in range(2):
        await guard.start(request(host="2001:db8::1"))
    same_site, elsewhere = request(host="2001:db8::2"), request(host="2001:db8:0:1::1")
    assert await refused(guard.start(same_site)) == (429, "rate_limited")
    await guard.start(elsewhere)
    await guard.start(request(SHOP, "2001:db8::1"))  # has a limit of its own


async def test_wrong_keys_of_an_address_are_limited_and_good_api_keys_pass() -> None:
    clock = Clock()
    store = InMemory()
    guard = access(clock, store=store)
    good = (await guard.mint(request(SHOP), {}, 600)).text
    for number in range(FAILED_PER_MINUTE):
        key = f"{'ek_' if number % 2 else 'sk-'}{number}"
        assert await refused(guard.start(request(key))) == (401, "invalid_api_key")
    for key in ("sk-1", "ek_1", good):  # nothing is looked up any more
        assert await refused(guard.start(request(key))) == (429, "rate_limited")
    assert await refused(guard.manage(request("sk-1"))) == (429, "rate_limited")
    await guard.start(request(SHOP))
    await guard.start(request(good, "192.0.2.2"))
    clock.now += 60 / FAILED_PER_MINUTE
    await guard.start(request(good))


class Broken(InMemory):
    async def put(self, text: str, key: EphemeralKey, now: float) -> None:
        raise KeysUnavailable

    async def get(self, text: str, now: float) -> EphemeralKey | None:
        raise KeysUnavailable


async def test_a_store_that_is_away_is_no_wrong_key() -> None:
    guard = access(store=Broken())
    assert await refused(guard.start(request("ek_x"))) == (503, "keys_unavailable")
    assert await refused(guard.mint(request(SHOP), {}, 60)) == (503, "keys_unavailable")
    assert await guard.start(request(SHOP)) == Caller("shop")


async def test_a_full_store_says_so() -> None:
    guard = access(store=InMemory(max_kept=1))
    await guard.mint(request(SHOP), {}, 60)
    assert await refused(guard.mint(request(SHOP), {}, 60)) == (429, "too_many_keys")


async def test_a_refusal_shows_no_key() -> None:
    with pytest.raises(Refused) as caught:
        await access().start(request("sk-secret"))
    assert "sk-secret" not in str(caught.value.body())
    assert caught.value.headers() == {"WWW-Authenticate": "Bearer"}
