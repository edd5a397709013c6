"""What may go into a DTLS handshake (RFC 6347 sections 4.1 and 4.2). Pure.

Until the handshake is done nothing is authentic, and OpenSSL gives up at the first record that it
cannot make sense of: one stray or forged datagram would end a call that has just begun. So only
whole handshake messages go in, and no alert in plain text; the watchdog of the call ends what a
client has given up.
"""

import enum
import struct

MAX_MESSAGE = 65_536  # bytes of one handshake message, certificates included

_RECORD = struct.Struct("!BHH6xH")  # type, version, epoch, (sequence), length
_MESSAGE = struct.Struct("!B3sH3s3s")  # type, length, sequence, fragment offset and length
_VERSIONS = (0xFEFD, 0xFEFF)  # a hello of DTLS 1.2 may come in a record of 1.0
_CHANGE_CIPHER_SPEC, _HANDSHAKE = 20, 22


class Reject(enum.StrEnum):
    """Why a datagram does not go into a handshake."""

    MALFORMED = "dtls_malformed"
    UNPROTECTED = "dtls_unprotected"  # an alert or data in plain text


def examine(datagram: bytes) -> Reject | None:
    """None if every record of `datagram` is encrypted, or a part of a handshake."""
    at, size = 0, len(datagram)
    while at < size:
        start = at + _RECORD.size
        if start > size:
            return Reject.MALFORMED
        kind, version, epoch, length = _RECORD.unpack_from(datagram, at)
        at = start + length
        if at > size or version not in _VERSIONS:
            return Reject.MALFORMED
        if epoch > 0 or kind == _CHANGE_CIPHER_SPEC:
            continue
        if kind != _HANDSHAKE:
            return Reject.UNPROTECTED
        if not _holds_messages(datagram[start:at]):
            return Reject.MALFORMED
    return None


def _holds_messages(record: bytes) -> bool:
    """Whether `record` is one or more handshake messages or fragments, and nothing else."""
    at, size = 0, len(record)
    while at + _MESSAGE.size <= size:
        _, length, _, offset, fragment = _MESSAGE.unpack_from(record, at)
        at += _MESSAGE.size + int.from_bytes(fragment, "big")
        end = int.from_bytes(offset, "big") + int.from_bytes(fragment, "big")
        if not end <= int.from_bytes(length, "big") <= MAX_MESSAGE:
            return False
    return at == size > 0
