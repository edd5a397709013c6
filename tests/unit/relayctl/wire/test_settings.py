import pydantic
import pytest

from relayctl.wire.settings import Endpoint, Settings, SettingsError, load


class Vip(Settings):
    id: int
    public: Endpoint


class Service(Settings):
    name: str = "a"
    limit: int = 3
    share: float = 0.5
    ratio: float = pydantic.Field(default=1.0, ge=0, lt=2)
    control_token: int = 0
    vip: tuple[Vip, ...] = ()


TOML = """
name = "from file"
[[vip]]
id = 1
public = "203.0.113.10:3478"
"""


def test_later_sources_win() -> None:
    environ = {"X_LIMIT": "4", "X_NAME": "from environment", "OTHER": "ignored"}
    config = load(Service, toml=TOML, environ=environ, prefix="X_", flags={"name": "flag"})
    assert (config.name, config.limit) == ("flag", 4)
    assert config.vip == (Vip(id=1, public=("203.0.113.10", 3478)),)


def test_flags_that_were_not_given_change_nothing() -> None:
    assert load(Service, toml=TOML, flags={"name": None}).name == "from file"


def test_environment_reaches_sections_and_lists() -> None:
    environ = {"X_VIP": '[{id = 2, public = "198.51.100.1:3478"}]'}
    assert load(Service, environ=environ, prefix="X_").vip[0].id == 2


@pytest.mark.parametrize(
    ("toml", "fault"),
    [
        ("limit = 'many'", "limit = 'many': "),
        ("colour = 1", "colour: unknown key"),
        ("limt = 1", r"limt: unknown key; did you mean limit\?"),
        ("[[vip]]\nid = 1\npublik = 'x'", r"vip\[0\].publik: .*; did you mean public\?"),
        ("[[vip]]\nid = 1\nlimit = 1", r"vip\[0\].limit: unknown key; check"),
        ("share = nan", "share = nan: is no finite number; write digits"),
        ("share = inf", "share = inf: is no finite number"),
        ("ratio = -1", r"ratio = -1: is too small; write 0.0 or more"),
        ("ratio = 3", r"ratio = 3: is too large; write less than 2.0"),
        ("[[vip]]\nid = 1", r"vip\[0\].public: missing"),
        ("[[vip]]\nid = 1\npublic = 'here'", r"vip\[0\].public = 'here': 'here' is no address"),
        ("[[vip]]\nid = 1\npublic = 5", r"vip\[0\].public = 5: want text of the form"),
        ("limit = ", "configuration is no TOML"),
        ("limit", "configuration is no TOML"),
    ],
)
def test_faults_name_key_and_value(toml: str, fault: str) -> None:
    with pytest.raises(SettingsError, match=fault):
        load(Service, toml=toml)


def test_every_fault_is_reported_at_once() -> None:
    with pytest.raises(SettingsError) as caught:
        load(Service, toml="limit = 'x'\ncolour = 1")
    assert len(caught.value.faults) == 2


def test_environment_cannot_make_a_section_of_a_value() -> None:
    with pytest.raises(SettingsError, match="X_NAME__FIRST: 'name' is a value"):
        load(Service, toml="name = 'a'", environ={"X_NAME__FIRST": "1"}, prefix="X_")


def test_secrets_are_hidden() -> None:
    with pytest.raises(SettingsError) as caught:
        load(Service, toml="control_token = 'hunter2'")
    assert "hunter2" not in str(caught.value)


def test_values_are_frozen() -> None:
    with pytest.raises(ValueError, match="frozen"):
        load(Service).name = "b"
