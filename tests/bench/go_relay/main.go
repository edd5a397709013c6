// A user-space WebRTC relay to compare with, as OpenAI described theirs: one SO_REUSEPORT socket for
// each worker, workers locked to OS threads, preallocated buffers, a map from client to backend that
// the ufrag of the client's first STUN packet fills. It adds the Simple Proxy Protocol header that
// Ferryline adds, so that both do the same work.
//
//	go_relay -vip 203.0.113.10:3478 -inner 10.2.0.1:5100 -workers 1
//
// The bench's ufrag says the backend in hex: 8 digits of address, 4 of port, the rest is ignored.
package main

import (
	"encoding/binary"
	"encoding/hex"
	"flag"
	"log"
	"net/netip"
	"runtime"
	"syscall"
	"unsafe"
)

const (
	sppSize       = 38
	sppMagic      = 0x56EC
	soReusePort   = 15
	soRcvBufForce = 33
	receiveBuffer = 1 << 20 // bytes
	largest       = 2048    // bytes of a datagram
)

type clientKey [6]byte // address and port in network order

type sockaddr = syscall.RawSockaddrInet4

type worker struct {
	outer, inner int
	backends     map[clientKey]*sockaddr
	vip          netip.AddrPort
}

func main() {
	vip := flag.String("vip", "", "address:port that clients send to")
	inner := flag.String("inner", "", "address:port towards backends; worker k has port + k")
	workers := flag.Int("workers", 1, "sockets and threads")
	flag.Parse()
	runtime.GOMAXPROCS(2 * *workers) // two threads each, though they may share a core
	for k := 0; k < *workers; k++ {
		w := newWorker(netip.MustParseAddrPort(*vip), netip.MustParseAddrPort(*inner), k)
		go w.forward()
		go w.back()
	}
	log.Print("ready")
	select {}
}

func newWorker(vip, inner netip.AddrPort, k int) *worker {
	own := netip.AddrPortFrom(inner.Addr(), inner.Port()+uint16(k))
	return &worker{listen(vip), listen(own), make(map[clientKey]*sockaddr, 1<<16), vip}
}

func listen(at netip.AddrPort) int {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM, 0)
	if err == nil {
		err = syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, soReusePort, 1)
	}
	if err == nil {
		err = syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, soRcvBufForce, receiveBuffer)
	}
	if err == nil {
		err = syscall.Bind(fd, &syscall.SockaddrInet4{Port: int(at.Port()), Addr: at.Addr().As4()})
	}
	if err != nil {
		log.Fatalf("%v: %v", at, err)
	}
	return fd
}

// Clients to backends. The header in front of the buffer is written once; of a packet only the
// client changes in it.
func (w *worker) forward() {
	runtime.LockOSThread()
	buffer := make([]byte, sppSize+largest)
	writeHeader(buffer, w.vip)
	payload := buffer[sppSize:]
	var from sockaddr
	var key clientKey
	for {
		size := receive(w.outer, payload, &from)
		if size < 0 {
			continue
		}
		copy(key[:4], from.Addr[:])
		*(*uint16)(unsafe.Pointer(&key[4])) = from.Port
		backend := w.backends[key]
		if backend == nil {
			if backend = backendOf(payload[:size]); backend == nil {
				continue
			}
			w.backends[key] = backend
		}
		copy(buffer[14:18], key[:4])
		copy(buffer[34:36], key[4:])
		send(w.inner, buffer[:sppSize+size], backend)
	}
}

// Backends to clients.
func (w *worker) back() {
	runtime.LockOSThread()
	buffer := make([]byte, sppSize+largest)
	var from, to sockaddr
	to.Family = syscall.AF_INET
	for {
		size := receive(w.inner, buffer, &from)
		if size <= sppSize || binary.BigEndian.Uint16(buffer) != sppMagic {
			continue
		}
		copy(to.Addr[:], buffer[14:18])
		copy((*[2]byte)(unsafe.Pointer(&to.Port))[:], buffer[34:36])
		send(w.outer, buffer[sppSize:size], &to)
	}
}

func writeHeader(buffer []byte, vip netip.AddrPort) {
	binary.BigEndian.PutUint16(buffer, sppMagic)
	buffer[12], buffer[13] = 0xff, 0xff
	address := vip.Addr().As16()
	copy(buffer[18:34], address[:])
	binary.BigEndian.PutUint16(buffer[36:], vip.Port())
}

// The backend that the USERNAME of a Binding request names, or nil (RFC 8489 section 5, 14.3).
func backendOf(packet []byte) *sockaddr {
	if len(packet) < 20 || binary.BigEndian.Uint16(packet) != 1 {
		return nil
	}
	for at := 20; at+4 <= len(packet); {
		kind := binary.BigEndian.Uint16(packet[at:])
		size := int(binary.BigEndian.Uint16(packet[at+2:]))
		if at+4+size > len(packet) {
			return nil
		}
		if kind == 0x0006 {
			return backendIn(packet[at+4 : at+4+size])
		}
		at += 4 + (size+3)&^3
	}
	return nil
}

func backendIn(username []byte) *sockaddr {
	var raw [6]byte
	if len(username) < 12 {
		return nil
	}
	if _, err := hex.Decode(raw[:], username[:12]); err != nil {
		return nil
	}
	backend := &sockaddr{Family: syscall.AF_INET}
	copy(backend.Addr[:], raw[:4])
	copy((*[2]byte)(unsafe.Pointer(&backend.Port))[:], raw[4:])
	return backend
}

// Plain system calls: those of the standard library make garbage for each address.
func receive(fd int, buffer []byte, from *sockaddr) int {
	length := uint32(unsafe.Sizeof(*from))
	size, _, errno := syscall.Syscall6(syscall.SYS_RECVFROM, uintptr(fd),
		uintptr(unsafe.Pointer(&buffer[0])), uintptr(len(buffer)), 0,
		uintptr(unsafe.Pointer(from)), uintptr(unsafe.Pointer(&length)))
	if errno != 0 {
		return -1
	}
	return int(size)
}

func send(fd int, data []byte, to *sockaddr) {
	syscall.Syscall6(syscall.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(&data[0])),
		uintptr(len(data)), 0, uintptr(unsafe.Pointer(to)), unsafe.Sizeof(*to))
}
