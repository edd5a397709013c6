from pathlib import Path

import pytest

from relayctl.wire.settings import SettingsError, load
from transceiver.backends.echo import Mode
from transceiver.config import ENVIRONMENT, TransceiverConfig

GOOD = """
listen = "10.2.0.2:5000"
relay_networks = ["10.2.0.1/32"]
cluster = 7
keys_file = "/etc/ferryline/route.keys"
mint = 1
control_token = "0123456789abcdef"
"""


def read(toml: str = GOOD, **environ: str) -> TransceiverConfig:
    names = {f"{ENVIRONMENT}{key}": value for key, value in environ.items()}
    return load(TransceiverConfig, toml=toml, environ=names, prefix=ENVIRONMENT)


def test_defaults() -> None:
    config = read()
    assert config.listen == ("10.2.0.2", 5000)
    assert config.inner == "spp"
    assert config.keys_file == Path("/etc/ferryline/route.keys")
    assert (config.capacity, config.backend, config.echo.mode) == (None, "echo", Mode.AUDIO)
    assert (config.workers, config.max_lateness_ms, config.drain_s) == (1, 20.0, 3600.0)
    assert (config.session.length_s, config.session.warning_s) == (3600.0, 60.0)
    assert (config.away_after_s, config.consent_s, config.setup_s) == (10.0, 30.0, 15.0)


def test_the_environment_goes_over_the_file() -> None:
    config = read(CAPACITY="5", ECHO__MODE="opus", RELAY_NETWORKS='["10.2.0.0/24"]')
    assert (config.capacity, config.echo.mode) == (5, Mode.OPUS)


@pytest.mark.parametrize(("length_s", "warning_s"), [(30, 15), (60, 30), (120, 60), (600, 60)])
def test_a_short_session_is_warned_of_at_its_half(length_s: float, warning_s: float) -> None:
    session = read(GOOD + f"[session]\nlength_s = {length_s}").session
    assert (session.length_s, session.warning_s) == (length_s, warning_s)


def without(key: str, *more: str) -> str:
    lines = [line for line in GOOD.splitlines() if not line.startswith(key)]
    return "\n".join([*lines, *more])


@pytest.mark.parametrize(
    ("toml", "fault"),
    [
        pytest.param(without("listen"), "listen: missing", id="no_listen"),
        pytest.param(
            without("listen", 'listen = "0.0.0.0:5000"'), "route tokens carry it", id="wildcard"
        ),
        pytest.param(without("listen", 'listen = "host:1"'), "is no address", id="host_name"),
        pytest.param(without("relay"), "relay_networks: empty", id="no_relays"),
        pytest.param(
            without("relay", 'relay_networks = ["10.2.0.1/24"]'), "is no network", id="host_bits"
        ),
        pytest.param(without("control"), "control_token: missing", id="no_token"),
        pytest.param(without("control", 'control_token = "short"'), "too short", id="short_token"),
        pytest.param(GOOD + "colour = 1", "colour: unknown key", id="unknown"),
        pytest.param(GOOD + "capacity = 0", "capacity", id="capacity"),
        pytest.param(GOOD + "workers = 0", "workers", id="no_workers"),
        pytest.param(
            GOOD.replace("5000", "65534") + "workers = 3",
            "workers = 3: their ports would go from 65534 to 65536",
            id="ports",
        ),
        pytest.param(GOOD + "away_after_s = 40", "consent_s", id="away_after_consent"),
        pytest.param(GOOD + 'cluster_prefix = "10.0.0.0/8"', "has to be an IPv6 /96", id="prefix"),
        pytest.param(without("keys", 'keys_file = "keys"'), "is relative", id="relative"),
        pytest.param(GOOD + 'backend = "cow"', "backend", id="backend"),
        pytest.param(
            GOOD + 'backend = "realtime"', "realtime.url: missing; backend 'realtime'", id="no_url"
        ),
        pytest.param(
            GOOD + "[session]\nlength_s = 60\nwarning_s = 60",
            "warning_s = 60.0: not less than",
            id="warning",
        ),
    ],
)
def test_names_the_fault(toml: str, fault: str) -> None:
    with pytest.raises(SettingsError, match=fault):
        read(toml)


def test_a_token_is_not_shown() -> None:
    with pytest.raises(SettingsError) as caught:
        read(without("control", 'control_token = "hunter2"'))
    assert "hunter2" not in str(caught.value)


def test_the_redis_url_is_a_secret() -> None:
    config = read(f'redis = "redis://:pw-of-redis@10.2.0.5:6379/0"\n{GOOD}')
    assert config.redis == "redis://:pw-of-redis@10.2.0.5:6379/0"
    assert "pw-of-redis" not in repr(config)
    with pytest.raises(SettingsError, match="redis = <hidden>: is no Redis"):
        read(f'redis = "10.2.0.5:6379"\n{GOOD}')


def test_loopback_needs_no_token() -> None:
    assert not read(without("control").replace("10.2.0.2", "127.0.0.1")).control_token


def test_workers_have_ports_in_a_row() -> None:
    assert read(GOOD + "workers = 3").endpoints == tuple(("10.2.0.2", 5000 + n) for n in range(3))
    assert read(GOOD.replace("5000", "65534") + "workers = 2").endpoints[-1] == ("10.2.0.2", 65535)


def test_plain_needs_no_relays() -> None:
    assert read(without("relay", 'inner = "plain"')).relay_networks == ()
