import hashlib
import hmac

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signaling.access import api_keys
from signaling.access.api_keys import ApiKey, ApiKeys, digest_of, render

SHOP = ApiKey("shop", digest_of("sk-fl-shop"), 60)
BANK = ApiKey("bank", digest_of("sk-fl-bank"), 0)
KEYS = ApiKeys((SHOP, BANK))


def test_a_key_is_found_by_its_text() -> None:
    assert KEYS.find("sk-fl-shop") is SHOP
    assert KEYS.find("sk-fl-bank") is BANK


@given(st.text())
def test_no_other_text_is_a_key(text: str) -> None:
    assert text in ("sk-fl-shop", "sk-fl-bank") or KEYS.find(text) is None


def test_every_key_is_compared_whatever_matches(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = []

    def compare(ours: bytes, theirs: bytes) -> bool:
        compared.append(ours)
        return ours == theirs

    monkeypatch.setattr(hmac, "compare_digest", compare)
    assert KEYS.find("sk-fl-shop") is SHOP
    assert compared == [SHOP.digest, BANK.digest]


def test_a_subject_without_a_key_has_no_rate() -> None:
    assert KEYS.offers_per_minute("shop") == 60
    assert KEYS.offers_per_minute("bank") == 0
    assert KEYS.offers_per_minute("other") is None


def test_a_digest_is_what_sha256sum_says() -> None:
    assert digest_of("sk-fl-x").hex() == hashlib.sha256(b"sk-fl-x").hexdigest()


def test_a_new_key_shows_all_its_randomness() -> None:
    assert render(bytes(32)) == "sk-fl-" + "A" * 43
    assert render(bytes(range(32))) != render(bytes(range(1, 33)))
    with pytest.raises(ValueError, match="16 random bytes"):
        render(bytes(16))
    assert api_keys.RANDOM_BYTES == 32
