"""A crowd of clients that send RTP in the midst of their calls, and the endpoint that answers them.

    python -m tests.chaos.crowd send HOST:PORT CLIENTS PACKETS_PER_S
    python -m tests.chaos.crowd answer HOST:PORT

Clients have addresses that nobody else in the lab has: `send` needs a raw socket. The endpoint
returns every datagram as it came, so with the header that it came with. Both run until they are
stopped.
"""

import socket
import struct
import sys
import time

from relayctl.wire.address import Address, pack_host, parse

NETWORK = "198.18.0.0/15"  # RFC 2544: of nobody
_PORTS = 64  # of each host
_SO_RCVBUFFORCE = 33
_BURST_S = 0.002
_HEADER = struct.Struct("!BBHHHBBH4s4sHHHH")  # IPv4 and UDP; the kernel fills in the sum of IPv4
_RTP = struct.Struct("!BBHII")
_VOICE = bytes(60)
_SIZE = _HEADER.size + _RTP.size + len(_VOICE)


def client(number: int) -> Address:
    host = number // _PORTS + 1
    return f"198.18.{host >> 8}.{host & 255}", 20000 + number % _PORTS


def packet(number: int, sequence: int, vip: Address) -> bytes:
    """RTP of a client, from the IPv4 header on; without a UDP checksum."""
    (source, port), (destination, vip_port) = client(number), vip
    size = _SIZE - 20
    addresses = pack_host(source)[12:], pack_host(destination)[12:]
    header = _HEADER.pack(
        *(0x45, 0, _SIZE, 0, 0, 64, socket.IPPROTO_UDP, 0, *addresses), *(port, vip_port, size, 0)
    )
    ssrc = 0x40000000 + number
    return header + _RTP.pack(0x80, 111, sequence & 0xFFFF, 960 * sequence, ssrc) + _VOICE


def send(vip: Address, clients: int, rate: int) -> None:
    """Each client in turn, `rate` packets a second in sum."""
    packets = [packet(number, 1, vip) for number in range(clients)]
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW) as sock:
        began, sent = time.monotonic(), 0
        while True:
            due = int((time.monotonic() - began) * rate)
            for number in range(sent, due):
                sock.sendto(packets[number % clients], vip)
            sent = due
            time.sleep(_BURST_S)


def answer(endpoint: Address) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, 32 << 20)
        sock.bind(endpoint)
        while True:
            datagram, sender = sock.recvfrom(2048)
            sock.sendto(datagram, sender)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["send", vip, clients, rate]:
            send(parse(vip), int(clients), int(rate))
        case ["answer", endpoint]:
            answer(parse(endpoint))
        case _:
            sys.exit(__doc__)
