import json
import stat

import pytest

from relayctl.wire.route_token import Key, open_token, parse_keys
from tests.unit.relayctl.cli.conftest import KEYS, Relay

MINTED = "IWwJ+/iUTKZerg88cJwZO0e0"  # key 1 (00…1f), cluster 7, 10.2.0.2:5000


def secrets_in(text: str) -> bool:
    return any(key.secret.hex()[:16] in text for key in KEYS.values())


def test_keygen_prints_a_key_line(relay: Relay) -> None:
    found = relay.bare("token", "keygen", "--id", "5")
    [key] = parse_keys(found.stdout).values()
    assert key.id == 5
    assert "0600" in found.stderr


def test_two_keys_differ(relay: Relay) -> None:
    first, second = (relay.bare("token", "keygen", "--id", "5").stdout for _ in range(2))
    assert first != second


def test_keygen_makes_a_private_file(relay: Relay) -> None:
    path = relay.root / "new.keys"
    found = relay.bare("token", "keygen", "--id", "5", "--out", str(path))
    assert found.exit_code == 0
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    [key] = parse_keys(path.read_text()).values()
    assert key.secret.hex() not in found.output


def test_keygen_makes_the_directory_too(relay: Relay) -> None:
    path = relay.root / "secrets/new.keys"
    assert relay.bare("token", "keygen", "--id", "5", "--out", str(path)).exit_code == 0
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_file_that_cannot_be_made_is_named_once(relay: Relay) -> None:
    path = relay.keys / "new.keys"
    found = relay.bare("token", "keygen", "--id", "5", "--out", str(path))
    assert found.exit_code == 1
    assert found.stderr.count("new.keys") == 1


def test_keygen_adds_to_a_file(relay: Relay) -> None:
    relay.keys.write_text(relay.keys.read_text().rstrip())
    assert relay.bare("token", "keygen", "--id", "5", "--out", str(relay.keys)).exit_code == 0
    assert parse_keys(relay.keys.read_text()).keys() == {1, 2, 5}


def test_keygen_never_replaces_a_key(relay: Relay) -> None:
    before = relay.keys.read_text()
    found = relay.bare("token", "keygen", "--id", "1", "--out", str(relay.keys))
    assert found.exit_code == 1
    assert "has a key 1 already" in found.stderr
    assert relay.keys.read_text() == before


def test_keygen_leaves_a_file_that_is_no_key_file(relay: Relay) -> None:
    before = relay.config.read_text()
    found = relay.bare("token", "keygen", "--id", "1", "--out", str(relay.config))
    assert found.exit_code == 1
    assert relay.config.read_text() == before


def test_keygen_of_an_impossible_id(relay: Relay) -> None:
    assert relay.bare("token", "keygen", "--id", "32").exit_code == 2


def mint(relay: Relay, *arguments: str) -> list[str]:
    return ["token", "mint", "--cluster", "7", "--endpoint", "10.2.0.2:5000", *arguments]


def test_mint(relay: Relay) -> None:
    found = relay.bare(*mint(relay, "--keys", str(relay.keys), "--id", "2"))
    route = open_token(KEYS, found.stdout.strip().encode())
    assert (route.cluster, route.host, route.port) == (7, 0x0A020002, 5000)


def test_mint_takes_the_keys_of_the_configuration(relay: Relay) -> None:
    found = json.loads(relay.run(*mint(relay, "--id", "2", "-o", "json")).stdout)
    assert found["key"] == 2
    assert open_token({2: KEYS[2]}, found["token"].encode()).cluster == 7


def test_mint_with_several_keys_asks_which(relay: Relay) -> None:
    found = relay.run(*mint(relay))
    assert found.exit_code == 2
    assert "--id is one of 1, 2" in found.stderr


def test_mint_with_one_key_takes_it(relay: Relay) -> None:
    relay.keys.write_text(f"9 {bytes(32).hex()}\n")
    found = relay.run(*mint(relay))
    assert open_token({9: Key(9, bytes(32))}, found.stdout.strip().encode()).port == 5000


def test_mint_with_a_key_that_is_not_there(relay: Relay) -> None:
    found = relay.run(*mint(relay, "--id", "3"))
    assert found.exit_code == 1
    assert "no key 3" in found.stderr


@pytest.mark.parametrize("token", [MINTED, f"{MINTED}:abcd"])
def test_open(relay: Relay, token: str) -> None:
    found = relay.run("token", "open", token)
    assert found.exit_code == 0
    lines = dict(line.split(maxsplit=1) for line in found.stdout.splitlines())
    assert lines == {"cluster": "7", "endpoint": "10.2.0.2:5000", "key": "1", "allowed": "yes"}


def test_open_without_configuration_does_not_judge(relay: Relay) -> None:
    found = relay.bare("token", "open", MINTED, "--keys", str(relay.keys), "-o", "json")
    assert found.exit_code == 0
    opened = json.loads(found.stdout)
    assert opened["endpoint"] == "10.2.0.2:5000"
    assert opened["allowed"] is None


@pytest.mark.parametrize(
    ("change", "reason"),
    [(("10.2.0.0/24", "10.9.0.0/24"), "not_allowed"), (("id = 7", "id = 8"), "unknown_cluster")],
)
def test_open_says_why_a_route_is_not_followed(
    relay: Relay, change: tuple[str, str], reason: str
) -> None:
    relay.config.write_text(relay.config.read_text().replace(*change))
    found = relay.run("token", "open", MINTED)
    assert found.exit_code == 1
    assert f"no: {reason}" in found.stdout


@pytest.mark.parametrize(
    ("token", "reason"),
    [
        ("x", "malformed"),
        ("ü" * 24, "malformed"),
        (MINTED[:-1] + "1", "forged"),
        ("J" + MINTED[1:], "unknown_key"),
    ],
)
def test_open_says_why_a_token_does_not_open(relay: Relay, token: str, reason: str) -> None:
    found = relay.run("token", "open", token)
    assert found.exit_code == 1
    assert f"does not open: {reason}" in found.stderr


def test_unreadable_keys(relay: Relay) -> None:
    relay.keys.write_text("1 abc\n")
    found = relay.run("token", "open", MINTED)
    assert found.exit_code == 1
    assert str(relay.keys) in found.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["token", "open", MINTED],
        ["token", "open", MINTED, "-o", "json"],
        ["token", "open", "x"],
        ["serve", "--check"],
        ["doctor", "-o", "json"],
        ["token", "mint", "--cluster", "7", "--endpoint", "10.2.0.2:5000", "--id", "1"],
    ],
)
def test_no_secret_is_shown(relay: Relay, arguments: list[str]) -> None:
    assert not secrets_in(relay.run(*arguments).output)
