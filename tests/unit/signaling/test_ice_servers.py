import pytest

from relayctl.wire.settings import SettingsError
from signaling.ice_servers import IceServers, ice_config, links
from tests.unit.signaling.fake_transceiver import CONFIG, configuration

STUN = '[[ice_server]]\nurls = "stun:stun.example.net"\n'
TURN = """
[[ice_server]]
urls = ["turn:turn.example.net:3478?transport=udp", "turns:turn.example.net"]
username = "user"
credential = "Pass-Word"
"""


def servers(text: str) -> IceServers:
    return configuration(CONFIG + text).ice_servers


def test_for_a_peer_connection() -> None:
    assert ice_config(servers("")) == {"iceServers": []}
    turn = ("turn:turn.example.net:3478?transport=udp", "turns:turn.example.net")
    assert ice_config(servers(STUN + TURN)) == {
        "iceServers": [
            {"urls": ("stun:stun.example.net",)},
            {"urls": turn, "username": "user", "credential": "Pass-Word"},
        ]
    }


def test_as_a_header() -> None:
    assert links(servers("")) == {}
    account = 'username="user"; credential="Pass-Word"; credential-type="password"'
    assert links(servers(STUN + TURN)) == {
        "Link": '<stun:stun.example.net>; rel="ice-server", '
        f'<turn:turn.example.net:3478?transport=udp>; rel="ice-server"; {account}, '
        f'<turns:turn.example.net>; rel="ice-server"; {account}'
    }


def test_the_credential_is_not_shown() -> None:
    assert "Pass-Word" not in repr(configuration(CONFIG + TURN))


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (STUN.replace("stun:", "http:"), r"ice_server\[0\].urls.*is no ICE server"),
        (STUN.replace("example.net", 'x>; rel=\\"'), "is no ICE server"),
        (STUN.replace('"stun:stun.example.net"', "[]"), "urls"),
        (TURN.replace('username = "user"\n', ""), "username and credential stand together"),
        (TURN.replace('credential = "Pass-Word"\n', ""), "username and credential stand together"),
        (TURN.replace("Pass-Word", "Pass-Word\\n"), "goes into a header"),
        (TURN.replace("Pass-Word", 'Pass-Word\\"'), "goes into a header"),
        (TURN.replace("Pass-Word", ""), "goes into a header"),
        (STUN + "password = 'x'", r"ice_server\[0\].password: unknown"),
    ],
)
def test_faults_name_the_key_and_hide_the_credential(text: str, fault: str) -> None:
    with pytest.raises(SettingsError, match=fault) as caught:
        servers(text)
    assert "Pass-Word" not in str(caught.value)
