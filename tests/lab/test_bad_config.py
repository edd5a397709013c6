"""Configurations that people get wrong: what the three services say with `--check`.

Every message names key, value and mend; the exit code is 2. No root, no namespaces.
"""

import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

import relayctl.cli.main
import signaling.__main__
import transceiver.cli
from tests.lab.node import REPOSITORY
from tests.lab.starting import spoiled

GOOD = {
    "relayctl": """
instance = "relay-a"
datapath = "xdp"
keys_file = "{keys}"
max_flows = 16384
inner_address = "10.2.0.1"
inner_ports = 16
dev_local = false
admin = "127.0.0.1:9100"
[[vip]]
id = 1
public = "203.0.113.10:3478"
[[interface]]
name = "inner0"
role = "inner"
[[interface]]
name = "outer0"
role = "outer"
[[cluster]]
id = 7
allow = ["10.2.0.0/24"]
""",
    "transceiver": """
listen = "10.2.0.2:5000"
relay_networks = ["10.2.0.1/32"]
cluster = 7
keys_file = "{keys}"
mint = 1
control_token = "sixteen-letters-or-more"
backend = "echo"
""",
    "signaling": """
listen = "127.0.0.1:8080"
keys_file = "{keys}"
control_token = "sixteen-letters-or-more"
[[transceiver]]
endpoint = "10.2.0.2:5000"
[[ingress]]
name = "relay-a"
vips = ["203.0.113.10:3478"]
admin = "http://10.2.0.1:9100"
[[cluster]]
id = 7
allow = ["10.2.0.0/24"]
""",
}

RELAY = {
    "misspelt": ({"max_flow": "9"}, "max_flow: unknown key; did you mean max_flows"),
    "no port": ({"public": "'203.0.113.10'"}, "want <ip>:<port>"),
    "port of 99999": ({"public": "'203.0.113.10:99999'"}, "99999' is no address: want <ip>:<port>"),
    "a host name": ({"admin": "'localhost:9100'"}, "'localhost:9100': .* is no IP address"),
    "a path as a name": ({"instance": "'a/b'"}, "instance = 'a/b': .* use 1-32 characters"),
    "twelve ports": ({"inner_ports": "12"}, "inner_ports = 12: .*power of two.* default is 16"),
    "a host as a network": (
        {"allow": "['10.2.0.1/24']"},
        r"allow.* = '10\.2\.0\.1/24': is no network; write '10\.2\.0\.0/24'",
    ),
    "nobody allowed": ({"allow": "[]"}, r"allow.* = \[\]: allows nothing; list"),
    "no allow-list": ({"allow": ""}, "allow: missing; it has no default, so set it"),
    "everybody allowed": ({"allow": "['0.0.0.0/0']"}, r"allow = 0\.0\.0\.0/0: overlaps .*; list"),
    "too many flows": ({"max_flows": "1000000000"}, "max_flows = 1000000000: would take .* choose"),
    "text for a number": ({"max_flows": "'many'"}, "max_flows = 'many': .*integer"),
    "another datapath": ({"datapath": "'ebpf'"}, "datapath = 'ebpf': .*'xdp' or 'socket'"),
    "kernel path on a laptop": (
        {"dev_local": "true"},
        "dev_local = true: .*set datapath = 'socket'",
    ),
    "both sides at once": ({"role": "'both'"}, "role = 'both' .*set trust_l2 = true"),
    "one side only": ({"role": "'outer'"}, "role = outer: .*needs an 'outer' and an 'inner'"),
    "loopback": ({"inner_address": "'127.0.0.1'"}, "inner_address = 127.0.0.1: .*dev_local = true"),
    "IPv6 only": ({"inner_address": "'fd00::1'"}, "inner_address = fd00::1: .*add our IPv4 addr"),
    "half a path": ({"keys_file": "'route.keys'"}, "keys_file = 'route.keys': is relative; write"),
    "no keys": (
        {"keys_file": "'/nonexistent'"},
        "keys_file = '/nonexistent': No such file .*keygen",
    ),
    "no TOML": ({"max_flows": "= 3"}, "configuration is no TOML: .*line"),
    "two of a kind": ({"instance": "'a'\ninstance = 'b'"}, "no TOML: .*overwrite"),
}
TRANSCEIVER = {
    "misspelt": ({"capacitie": "9"}, "capacitie: unknown key; did you mean capacity"),
    "everywhere": ({"listen": "'0.0.0.0:5000'"}, "listen = '0.0.0.0': .*write the inner address"),
    "a host name": ({"listen": "'localhost:5000'"}, "'localhost:5000': .* is no IP address"),
    "no relay": ({"relay_networks": "[]"}, "relay_networks: empty; name"),
    "anybody": ({"control_token": ""}, "control_token: missing; .*could make calls"),
    "a short secret": ({"control_token": "'abc'"}, "control_token.*: .*at least 16"),
    "a key it lacks": ({"mint": "9"}, "mint = 9: the key file has 1"),
    "key id 99": ({"mint": "99"}, "mint = 99: .*31"),
    "no keys": ({"keys_file": "'/nonexistent'"}, "keys_file = '/nonexistent': No such file"),
    "another backend": ({"backend": "'gpt'"}, "backend = 'gpt': .*'echo'"),
    "ends before away": ({"consent_s": "1.0"}, "consent_s = 1.0: less than away_after_s = 10.0"),
}
SIGNALING = {
    "misspelt": ({"keyfile": "'/x'"}, "keyfile: unknown key; did you mean keys_file"),
    "a host name": ({"listen": "'localhost:8080'"}, "'localhost:8080': .* is no IP address"),
    "a word for a descriptor": ({"listen": "'fd:x'"}, "listen = 'fd:x': .*"),
    "no keys": ({"keys_file": "'/nonexistent'"}, "keys_file = '/nonexistent': No such file"),
    "a stranger": ({"endpoint": "'10.9.9.9:5000'"}, "= '10.9.9.9:5000': is in no cluster; add"),
    "no URL": ({"admin": "'10.2.0.1:9100'"}, "admin = '10.2.0.1:9100': is no base URL; write"),
    "a blank in the secret": ({"control_token": "'a b'"}, "control_token = <hidden>: .*blanks"),
}

CASES = [
    pytest.param(module, *case, id=f"{module}: {name}")
    for module, cases in (
        ("relayctl", RELAY),
        ("transceiver", TRANSCEIVER),
        ("signaling", SIGNALING),
    )
    for name, case in cases.items()
]


COMMANDS: dict[str, click.Command] = {
    "relayctl": relayctl.cli.main.cli,
    "transceiver": transceiver.cli.cli,
    "signaling": signaling.__main__.main,
}


def check(module: str, path: Path) -> Result:
    """`<module> serve --config <path> --check`: the exit code, and no fault of ours."""
    command = ["serve", "--config", str(path), "--check"]
    result = CliRunner().invoke(COMMANDS[module], command, env={"COLUMNS": "1000"})
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result


def write(text: str, directory: Path) -> Path:
    keys = directory / "route.keys"
    keys.write_text(f"1 {bytes(range(32)).hex()}\n")
    path = directory / "service.toml"
    path.write_text(text.replace("{keys}", str(keys)))
    return path


@pytest.mark.parametrize("module", GOOD)
def test_a_good_configuration(module: str, tmp_path: Path) -> None:
    """Of the relay's, only this host is at fault, which has no such interfaces: exit code 1."""
    path = write(GOOD[module], tmp_path)
    wanted = 1 if module == "relayctl" else 0
    result = check(module, path)
    assert result.exit_code == wanted, result.stderr
    assert ("link:outer0: no such interface" in result.stderr) is bool(wanted)
    command = [sys.executable, "-m", module, "serve", "--config", str(path), "--check"]
    assert subprocess.run(command, cwd=REPOSITORY, capture_output=True).returncode == wanted


@pytest.mark.parametrize(("module", "changes", "message"), CASES)
def test_a_bad_configuration(
    module: str, changes: dict[str, str], message: str, tmp_path: Path
) -> None:
    result = check(module, write(spoiled(GOOD[module], changes), tmp_path))
    assert re.search(message, result.stderr), result.stderr
    assert result.exit_code == 2


@pytest.mark.parametrize("module", GOOD)
def test_a_file_that_is_no_text(module: str, tmp_path: Path) -> None:
    path = tmp_path / "service.toml"
    path.write_bytes(b"\xff\xfe\x00")
    for given in (path, tmp_path, tmp_path / "missing.toml"):
        result = check(module, given)
        assert str(given) in result.stderr
        assert result.exit_code == 2
