package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand"
	"net"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/pion/dtls/v2"
	"github.com/pion/ice/v2"
	"github.com/pion/srtp/v2"
	"github.com/pion/stun"
	"github.com/pion/transport/v2/packetio"
)

const (
	firstRetry    = 250 * time.Millisecond // of a check, doubling
	setupPatience = 15 * time.Second
	consentEvery  = 4 * time.Second
	soTimestampNs = 35
)

// One caller: a socket, a controlling ICE agent with one pair, a DTLS client, SRTP both ways.
type caller struct {
	id               string
	fd               int
	local, remote    *net.UDPAddr
	ufrag, password  string
	theirs, theirKey string
	ssrc             uint32
	sequence         uint16
	timestamp        uint32
	handshake        *packetio.Buffer // DTLS datagrams for the handshake
	answered         chan struct{}    // closed once the server has answered a check
	addressed        atomic.Bool      // it is known where the server is
	pathUp           atomic.Bool
	connection       *dtls.Conn
	profile          string
	inbound          *srtp.Context // the reader's
	outbound         *srtp.Context // the speaker's
	ready            atomic.Bool
	book             book
}

func newCaller(host net.IP) (*caller, error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM|syscall.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	c := &caller{fd: fd, ssrc: rand.Uint32(), sequence: uint16(rand.Uint32()), timestamp: rand.Uint32(), handshake: packetio.NewBuffer()}
	c.answered = make(chan struct{})
	c.ufrag, c.password = letters(4), letters(12)
	err = syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, soTimestampNs, 1)
	if err == nil {
		at := &syscall.SockaddrInet4{}
		copy(at.Addr[:], host.To4())
		err = syscall.Bind(fd, at)
	}
	if err == nil {
		var name syscall.Sockaddr
		if name, err = syscall.Getsockname(fd); err == nil {
			c.local = &net.UDPAddr{IP: host, Port: name.(*syscall.SockaddrInet4).Port}
		}
	}
	if err != nil {
		syscall.Close(fd)
		return nil, err
	}
	return c, nil
}

// Have the offer answered, and know where to.
func (c *caller) offer(at *api, fingerprint string) error {
	id, answer, err := at.offer(offerOf(c, fingerprint))
	if err != nil {
		return err
	}
	c.id = id
	if c.theirs, c.theirKey, c.remote, err = readAnswer(answer); err != nil {
		return err
	}
	to := &syscall.SockaddrInet4{Port: c.remote.Port}
	copy(to.Addr[:], c.remote.IP.To4())
	err = syscall.Connect(c.fd, to)
	c.addressed.Store(err == nil)
	return err
}

// ICE, then DTLS; the caller is ready to talk afterwards.
func (c *caller) setUp(config *dtls.Config) error {
	deadline := time.Now().Add(setupPatience)
	if err := c.findPath(deadline); err != nil {
		return err
	}
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	connection, err := dtls.ClientWithContext(ctx, (*handshakeConn)(c), config)
	if err != nil {
		return fmt.Errorf("DTLS: %w", err)
	}
	c.connection = connection
	return c.takeKeys()
}

func (c *caller) findPath(deadline time.Time) error {
	for retry := firstRetry; time.Now().Before(deadline); retry *= 2 {
		c.check()
		select {
		case <-c.answered:
			return nil
		case <-time.After(retry):
		}
	}
	return errors.New("ICE: no check was answered")
}

// A check that nominates at once (RFC 8445 section 8.1.1: the first pair is the only one).
func (c *caller) check() {
	request, err := stun.Build(
		stun.BindingRequest, stun.TransactionID,
		stun.NewUsername(c.theirs+":"+c.ufrag),
		ice.AttrControlling(uint64(c.ssrc)), ice.UseCandidate(), ice.PriorityAttr(1853824767),
		stun.NewShortTermIntegrity(c.theirKey), stun.Fingerprint,
	)
	if err == nil {
		c.send(request.Raw)
	}
}

// A STUN message of the server. Its answer to any check of ours will do: one pair, one path.
func (c *caller) receiveStun(data []byte) {
	message := &stun.Message{Raw: append([]byte(nil), data...)}
	if !c.addressed.Load() || message.Decode() != nil {
		return // a check may come before the answer that it belongs to
	}
	switch message.Type {
	case stun.BindingSuccess:
		if !c.pathUp.Swap(true) {
			close(c.answered)
		}
	case stun.BindingRequest:
		response, err := stun.Build(
			stun.NewTransactionIDSetter(message.TransactionID), stun.BindingSuccess,
			&stun.XORMappedAddress{IP: c.remote.IP, Port: c.remote.Port},
			stun.NewShortTermIntegrity(c.password), stun.Fingerprint,
		)
		if err == nil {
			c.send(response.Raw)
		}
	}
}

func (c *caller) takeKeys() error {
	chosen, ok := c.connection.SelectedSRTPProtectionProfile()
	if !ok {
		return errors.New("DTLS: no SRTP profile")
	}
	config := srtp.Config{Profile: srtp.ProtectionProfile(chosen)}
	state := c.connection.ConnectionState()
	if err := config.ExtractSessionKeysFromDTLS(&state, true); err != nil {
		return err
	}
	keys := config.Keys
	var err error
	if c.outbound, err = srtp.CreateContext(keys.LocalMasterKey, keys.LocalMasterSalt, config.Profile); err != nil {
		return err
	}
	if c.inbound, err = srtp.CreateContext(keys.RemoteMasterKey, keys.RemoteMasterSalt, config.Profile); err != nil {
		return err
	}
	c.profile = map[dtls.SRTPProtectionProfile]string{
		dtls.SRTP_AEAD_AES_128_GCM:       "AEAD_AES_128_GCM",
		dtls.SRTP_AES128_CM_HMAC_SHA1_80: "AES128_CM_HMAC_SHA1_80",
	}[chosen]
	c.ready.Store(true)
	return nil
}

func (c *caller) send(data []byte) {
	syscall.Write(c.fd, data) // a full buffer or a server that went away: the books will tell
}

func (c *caller) close() {
	c.ready.Store(false)
	if c.connection != nil {
		c.connection.Close() // close_notify
	}
	c.handshake.Close()
}

// The handshake's view of the caller: a net.Conn.
type handshakeConn caller

func (h *handshakeConn) Read(into []byte) (int, error) { return h.handshake.Read(into) }
func (h *handshakeConn) Write(data []byte) (int, error) {
	(*caller)(h).send(data)
	return len(data), nil
}
func (h *handshakeConn) Close() error                   { return nil }
func (h *handshakeConn) LocalAddr() net.Addr            { return h.local }
func (h *handshakeConn) RemoteAddr() net.Addr           { return h.remote }
func (h *handshakeConn) SetDeadline(at time.Time) error { return h.handshake.SetReadDeadline(at) }
func (h *handshakeConn) SetReadDeadline(at time.Time) error {
	return h.handshake.SetReadDeadline(at)
}
func (h *handshakeConn) SetWriteDeadline(time.Time) error { return nil }

func letters(octets int) string {
	raw := make([]byte, octets)
	rand.Read(raw)
	return hex.EncodeToString(raw)
}
