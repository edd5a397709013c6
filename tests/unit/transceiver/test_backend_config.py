from typing import Any

import pytest

from relayctl.wire.settings import Settings, SettingsError, load
from transceiver.backend_config import (
    EchoSection,
    ParrotSection,
    RealtimeSection,
    SessionSection,
)


class Whole(Settings):
    """The sections under the names that they have in the configuration."""

    echo: EchoSection = EchoSection()
    parrot: ParrotSection = ParrotSection()
    realtime: RealtimeSection = RealtimeSection()
    session: SessionSection = SessionSection()


def read(toml: str = "") -> Whole:
    return load(Whole, toml=toml)


def test_defaults() -> None:
    config = read()
    assert (config.parrot.vad, config.parrot.think_ms, config.parrot.transcribe) == (
        *("silero", 0),
        False,
    )
    realtime = config.realtime
    assert (realtime.url, realtime.model, realtime.key_file, realtime.headers) == (
        "",
        None,
        None,
        {},
    )
    assert (realtime.dialect, realtime.connect_s) == ("ga", 5.0)
    session = config.session
    assert (session.client_buffer_ms, session.echo_guard) == (40.0, True)


@pytest.mark.parametrize(
    "url",
    [
        "wss://api.openai.com/v1/realtime",
        "ws://127.0.0.1:8080/v1/realtime?api-version=1",
        "wss://[::1]:8443/",
    ],
)
def test_good_addresses(url: str) -> None:
    assert read(f"realtime = {{url = '{url}'}}").realtime.url == url


@pytest.mark.parametrize(
    ("toml", "fault"),
    [
        ("[parrot]\nvad = 'ears'", "'silero' or 'webrtc'"),
        ("[parrot]\nthink_ms = -1", "parrot.think_ms = -1"),
        ("[parrot]\nthink_ms = 60001", "parrot.think_ms"),
        ("[parrot]\ninterruption_ms = 10", "parrot.interruption_ms"),
        ("[parrot]\ntranscribe = 'perhaps'", "true nor false"),
        ("[realtime]\nurl = 'https://host/v1'", "is no ws:// or wss:// address"),
        ("[realtime]\nurl = 'host:80'", "is no ws://"),
        ("[realtime]\nurl = 'wss://'", "is no ws://"),
        ("[realtime]\nurl = 'wss://host:99999/'", "has a port that there is not"),
        ("[realtime]\nurl = 'wss://host:0/'", "has a port that there is not"),
        ("[realtime]\nurl = 'wss://host/v1#here'", "has a #fragment"),
        ("[realtime]\nurl = 'wss://host/v1 /x'", "has a space"),
        ("[realtime]\nurl = 'wss://host/v1?model='", "has an empty model"),
        ("[realtime]\nmodel = ''", "realtime.model = '': is empty; leave it out"),
        ("[realtime]\nurl = 'wss://me:hunter2@host/'", "put the key into key_file"),
        ("[realtime]\nkey_file = 'key'", "is relative"),
        ("[realtime]\nconnect_s = 0", "realtime.connect_s"),
        ("[realtime]\ndialect = 'latin'", "'ga' or 'beta'"),
        ("[realtime.headers]\n'api key' = 'x'", "printable ASCII"),
        ('[realtime.headers]\napi-key = "hunter2\\r\\n"', "printable ASCII"),
        ("[realtime.headers]\napi-key = 5", "is no text"),
        ("[session]\nlength_s = 0", "session.length_s"),
        ("[session]\nwarning_s = -1", "session.warning_s"),
        ("[session]\nclient_buffer_ms = 1001", "session.client_buffer_ms"),
        ("[session]\nguard = true", "unknown key; did you mean echo_guard"),
        ("[session]\nlenght_s = 1", r"session.lenght_s: unknown key; did you mean length_s\?"),
        ("[realtime]\nkeyfile = '/k'", r"realtime.keyfile: .*did you mean key_file\?"),
        ("[session]\nwarning_s = nan", "warning_s = nan: is no finite number"),
    ],
)
def test_names_the_fault(toml: str, fault: str) -> None:
    with pytest.raises(SettingsError, match=fault) as caught:
        read(toml)
    assert "hunter2" not in str(caught.value)


def test_values_are_not_shown_where_keys_may_be() -> None:
    sections: dict[str, Any] = {"url": "http://h/?api-key=hunter2", "headers": "hunter2"}
    for key, value in sections.items():
        with pytest.raises(SettingsError, match=f"realtime.{key} = <hidden>") as caught:
            read(f"realtime = {{{key} = '{value}'}}")
        assert "hunter2" not in str(caught.value)
