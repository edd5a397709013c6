"""A self-signed certificate, so that a phone on the local network may use its microphone.

Made at first start and kept; made anew when it has expired or lacks a name. For a service that the
world sees give a real one in `[tls]`.
"""

import datetime
import ipaddress
import os
from collections.abc import Sequence
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from signaling.config import is_ip

LIFE = datetime.timedelta(days=397)  # browsers refuse longer ones
EARLY = datetime.timedelta(days=7)  # made anew so long before the end
SKEW = datetime.timedelta(hours=1)  # a client's clock may be behind


def ensure(cert: Path, key: Path, hosts: Sequence[str], now: datetime.datetime) -> str:
    """Have `cert` and `key` (mode 0600) serve `hosts` at `now`; the SHA-256 fingerprint in hex.

    Raises `OSError`."""
    if not (cert.exists() and key.exists() and serves(cert.read_bytes(), hosts, now)):
        chain, secret = make(hosts, now)
        cert.parent.mkdir(parents=True, exist_ok=True)
        _write(key, secret, 0o600)
        _write(cert, chain, 0o644)
    return x509.load_pem_x509_certificate(cert.read_bytes()).fingerprint(hashes.SHA256()).hex()


def serves(pem: bytes, hosts: Sequence[str], now: datetime.datetime) -> bool:
    """Does the certificate name every one of `hosts`, and is it good for some days more?"""
    try:
        certificate = x509.load_pem_x509_certificate(pem)
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (ValueError, x509.ExtensionNotFound):
        return False
    return set(_names(hosts)) <= set(names) and (
        certificate.not_valid_before_utc <= now < certificate.not_valid_after_utc - EARLY
    )


def make(hosts: Sequence[str], now: datetime.datetime) -> tuple[bytes, bytes]:
    """A new certificate for `hosts` and its private key, both PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, hosts[0][:64])])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - SKEW)
        .not_valid_after(now - SKEW + LIFE)
        .add_extension(x509.SubjectAlternativeName(_names(hosts)), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(key, hashes.SHA256())
    )
    return certificate.public_bytes(serialization.Encoding.PEM), key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _names(hosts: Sequence[str]) -> list[x509.GeneralName]:
    return [
        x509.IPAddress(ipaddress.ip_address(host)) if is_ip(host) else x509.DNSName(host)
        for host in hosts
    ]


def _write(path: Path, content: bytes, mode: int) -> None:
    """Whole or not at all, and never readable by others in between."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(content)
    fresh.replace(path)
