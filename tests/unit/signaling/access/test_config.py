import pytest

from relayctl.wire.settings import SettingsError
from signaling.access import config as access_config
from signaling.access.api_keys import digest_of
from tests.unit.signaling.fake_transceiver import CONFIG, configuration

DIGEST = digest_of("sk-fl-a").hex()
KEY = f'[[api_key]]\nsubject = "shop"\nsha256 = "{DIGEST}"\n'
OTHER = KEY.replace(DIGEST, digest_of("sk-fl-b").hex())


def test_open_on_loopback_when_nothing_is_said() -> None:
    rules = access_config.rules(configuration())
    assert rules.open
    assert rules.client_hangup
    assert rules.offers_per_minute == 600
    assert rules.keys.find("sk-fl-a") is None


def test_keys_where_there_are_any() -> None:
    rules = access_config.rules(
        configuration(CONFIG + KEY + "offers_per_minute = 5\n" + OTHER.replace('"shop"', '"bank"'))
    )
    assert not rules.open
    assert not rules.client_hangup
    key = rules.keys.find("sk-fl-a")
    assert key is not None
    assert (key.subject, key.offers_per_minute) == ("shop", 5)


def test_what_is_written_stands() -> None:
    text = 'access = "open"\nallow_client_hangup = false\n' + CONFIG + KEY
    rules = access_config.rules(configuration(text + "[limits]\noffers_per_minute_per_address = 7"))
    assert rules.open
    assert not rules.client_hangup
    assert rules.offers_per_minute == 7


def test_two_keys_of_a_subject() -> None:
    assert access_config.rules(configuration(CONFIG + KEY + OTHER)).keys.find("sk-fl-b")


@pytest.mark.parametrize("listen", ["0.0.0.0:80", "[::]:80", "192.0.2.1:80"])
def test_whoever_listens_for_others_has_to_say_who_may_call(listen: str) -> None:
    text = f'listen = "{listen}"\n' + CONFIG
    with pytest.raises(SettingsError, match=r"^access: missing, .* write access = 'open'"):
        configuration(text)
    configuration('access = "open"\n' + text)
    configuration(text + KEY)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('access = "keys"\n' + CONFIG, r"access = 'keys': there is no \[\[api_key\]\]"),
        ('access = "all"\n' + CONFIG, r"access = 'all': is not 'keys' or 'open'"),
        (CONFIG + KEY + KEY, "of subject 'shop': stands twice"),
        (CONFIG + KEY + OTHER + "offers_per_minute = 1", "they share one limit"),
        (CONFIG + KEY.replace(DIGEST, "sk-fl-a"), r"api_key\[0\]\.sha256"),
        (CONFIG + KEY.replace("shop", "a b"), r"api_key\[0\]\.subject"),
        (CONFIG + KEY + "rate = 1", r"api_key\[0\]\.rate: unknown key"),
        (CONFIG + KEY + "offers_per_minute = -1", r"api_key\[0\]\.offers_per_minute"),
        (CONFIG + "[limits]\nconnection = 1", "limits.connection: unknown key; did you mean"),
    ],
)
def test_faults_name_key_and_mend(text: str, fault: str) -> None:
    with pytest.raises(SettingsError, match=fault):
        configuration(text)


def test_a_key_written_in_place_of_its_digest_is_not_shown() -> None:
    with pytest.raises(SettingsError) as caught:
        configuration(CONFIG + KEY.replace(DIGEST, "sk-fl-secret"))
    assert "sk-fl-secret" not in str(caught.value)


def test_digests_are_not_shown() -> None:
    assert DIGEST not in repr(configuration(CONFIG + KEY))
