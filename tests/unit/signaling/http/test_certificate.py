import datetime
import ssl
import stat
from pathlib import Path

import pytest
from cryptography import x509

from signaling.http.certificate import LIFE, ensure, make, serves

NOW = datetime.datetime(2026, 5, 1, tzinfo=datetime.UTC)
HOSTS = ("192.0.2.7", "talk.example", "2001:db8::1")


def test_names_are_the_given_ones() -> None:
    pem, _ = make(HOSTS, NOW)
    names = x509.load_pem_x509_certificate(pem).extensions.get_extension_for_class(
        x509.SubjectAlternativeName
    )
    assert names.value.get_values_for_type(x509.DNSName) == ["talk.example"]
    assert [str(ip) for ip in names.value.get_values_for_type(x509.IPAddress)] == [
        "192.0.2.7",
        "2001:db8::1",
    ]


@pytest.mark.parametrize(
    ("hosts", "later", "good"),
    [
        (HOSTS, datetime.timedelta(0), True),
        (HOSTS[:1], datetime.timedelta(days=100), True),
        (("other.example",), datetime.timedelta(0), False),
        (HOSTS, LIFE - datetime.timedelta(days=1), False),
        (HOSTS, -datetime.timedelta(days=1), False),
    ],
)
def test_serves(hosts: tuple[str, ...], later: datetime.timedelta, good: bool) -> None:
    pem, _ = make(HOSTS, NOW)
    assert serves(pem, hosts, NOW + later) is good


def test_serves_refuses_rubbish() -> None:
    assert not serves(b"-----BEGIN", HOSTS, NOW)


def test_ensure_makes_it_once_and_keeps_the_key_private(tmp_path: Path) -> None:
    cert, key = tmp_path / "new" / "c.pem", tmp_path / "new" / "k.pem"
    first = ensure(cert, key, HOSTS, NOW)
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(cert, key)
    assert ensure(cert, key, HOSTS, NOW) == first
    assert ensure(cert, key, ("another.example",), NOW) != first
    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(cert, key)
    assert sorted(path.name for path in cert.parent.iterdir()) == ["c.pem", "k.pem"]
