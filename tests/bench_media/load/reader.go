package main

import (
	"log"
	"runtime"
	"sync"
	"syscall"
	"unsafe"

	"github.com/pion/rtp"
)

const largest = 2048 // bytes of a datagram

// One thread that reads every caller's socket. The kernel's time stamp says when a packet arrived, so
// that what the generator has to do meanwhile is no lateness of the server.
type reader struct {
	epoll   int
	mutex   sync.Mutex
	callers map[int32]*caller
}

func newReader() (*reader, error) {
	epoll, err := syscall.EpollCreate1(0)
	if err != nil {
		return nil, err
	}
	r := &reader{epoll: epoll, callers: map[int32]*caller{}}
	go r.run()
	return r, nil
}

func (r *reader) add(c *caller) error {
	r.mutex.Lock()
	r.callers[int32(c.fd)] = c
	r.mutex.Unlock()
	event := syscall.EpollEvent{Events: syscall.EPOLLIN, Fd: int32(c.fd)}
	return syscall.EpollCtl(r.epoll, syscall.EPOLL_CTL_ADD, c.fd, &event)
}

// Forget the caller and close its socket: both under the lock, so that a number used again is not
// taken for the old one.
func (r *reader) drop(c *caller) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	delete(r.callers, int32(c.fd))
	syscall.Close(c.fd)
}

func (r *reader) run() {
	runtime.LockOSThread()
	events := make([]syscall.EpollEvent, 256)
	var in inbox
	in.prepare()
	for {
		count, err := syscall.EpollWait(r.epoll, events, -1)
		if err != nil && err != syscall.EINTR {
			log.Fatal("epoll: ", err)
		}
		r.mutex.Lock()
		for _, event := range events[:max(count, 0)] {
			if c := r.callers[event.Fd]; c != nil {
				if size := in.receive(c.fd); size > 0 {
					c.receive(in.data[:size], in.arrived(), &in)
				}
			}
		}
		r.mutex.Unlock()
	}
}

// By first byte, RFC 7983.
func (c *caller) receive(data []byte, arrived int64, in *inbox) {
	switch first := data[0]; {
	case first < 4:
		c.receiveStun(data)
	case first >= 20 && first < 64:
		c.handshake.Write(data) // a copy; full or closed: as if lost
	case first >= 128 && first < 192 && len(data) > 12 && c.ready.Load():
		if kind := data[1]; kind >= 192 && kind <= 223 {
			return // RTCP, RFC 5761
		}
		plain, err := c.inbound.DecryptRTP(in.plain[:0], data, &in.header)
		if err == nil {
			c.book.returned(&in.header, plain[in.header.MarshalSize():], arrived)
		}
	}
}

// Buffers of one recvmsg.
type inbox struct {
	data    [largest]byte
	plain   [largest]byte
	header  rtp.Header
	control [64]byte
	vector  syscall.Iovec
	message syscall.Msghdr
}

func (in *inbox) prepare() {
	in.vector = syscall.Iovec{Base: &in.data[0], Len: largest}
	in.message = syscall.Msghdr{Iov: &in.vector, Iovlen: 1, Control: &in.control[0]}
}

func (in *inbox) receive(fd int) int {
	in.message.Controllen = uint64(len(in.control))
	size, _, errno := syscall.Syscall(
		syscall.SYS_RECVMSG, uintptr(fd), uintptr(unsafe.Pointer(&in.message)), syscall.MSG_DONTWAIT)
	if errno != 0 {
		return -1
	}
	return int(size)
}

// When the packet arrived, in nanoseconds since 1970; our own clock if the kernel did not say.
func (in *inbox) arrived() int64 {
	header := (*syscall.Cmsghdr)(unsafe.Pointer(&in.control[0]))
	if in.message.Controllen < 32 || header.Type != soTimestampNs {
		return now()
	}
	stamp := (*syscall.Timespec)(unsafe.Pointer(&in.control[16]))
	return stamp.Nano()
}

func max(a, b int) int {
	if a > b {
		return a
	}
	return b
}
