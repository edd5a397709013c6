package main

import (
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"sort"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/pion/dtls/v2"
	"github.com/pion/dtls/v2/pkg/crypto/selfsign"
)

const (
	drain    = 500 * time.Millisecond
	tailSpan = 300 * time.Millisecond // the end of a talk may stay in a jitter buffer
	closing  = 16                     // hang-ups under way
)

// All callers, one certificate for them, one recording.
type load struct {
	api         *api
	host        net.IP
	config      *dtls.Config
	fingerprint string
	speech      [][]byte
	reader      *reader
	callers     []*caller
}

func newLoad(at *api, host, file string) (*load, error) {
	certificate, err := selfsign.GenerateSelfSigned()
	if err != nil {
		return nil, err
	}
	speech, err := readPackets(file)
	if err != nil {
		return nil, err
	}
	read, err := newReader()
	if err != nil {
		return nil, err
	}
	profiles := []dtls.SRTPProtectionProfile{dtls.SRTP_AEAD_AES_128_GCM, dtls.SRTP_AES128_CM_HMAC_SHA1_80}
	return &load{
		api: at, host: net.ParseIP(host), speech: speech, reader: read,
		fingerprint: fingerprintOf(certificate),
		config: &dtls.Config{
			Certificates:           []tls.Certificate{certificate},
			SRTPProtectionProfiles: profiles,
			ExtendedMasterSecret:   dtls.RequireExtendedMasterSecret,
			InsecureSkipVerify:     true, // whom we call is a process that the bench has started
		},
	}, nil
}

type connected struct {
	Connected int       `json:"connected"`
	Failed    []string  `json:"failed"`
	Seconds   float64   `json:"seconds"`
	SetupMs   []float64 `json:"setup_ms"` // sorted; from the offer, or from the first check if it came first
	Profile   string    `json:"profile"`
}

func (l *load) connect(given order) (*connected, error) {
	made := make([]*caller, given.Calls)
	for i := range made {
		c, err := newCaller(l.host)
		if err == nil {
			err = l.reader.add(c)
		}
		if err != nil {
			return nil, err
		}
		made[i] = c
	}
	l.callers = append(l.callers, made...)
	report := &connected{Failed: []string{}, SetupMs: []float64{}}
	offer := func(c *caller) error { return c.offer(l.api, l.fingerprint) }
	if given.OffersFirst {
		for _, err := range each(made, closing, offer) {
			if err != nil {
				return nil, fmt.Errorf("offer: %w", err)
			}
		}
		offer = func(*caller) error { return nil }
	}
	var mutex sync.Mutex
	began := time.Now()
	errs := each(made, given.AtOnce, func(c *caller) error {
		start := time.Now()
		if given.OffersFirst {
			start = began // all are due at once
		}
		err := offer(c)
		if err == nil {
			err = c.setUp(l.config)
		}
		if err == nil {
			mutex.Lock()
			report.SetupMs = append(report.SetupMs, float64(time.Since(start).Microseconds())/1e3)
			mutex.Unlock()
		}
		return err
	})
	report.Seconds = time.Since(began).Seconds()
	for i, err := range errs {
		if err != nil {
			report.Failed = append(report.Failed, err.Error())
		} else {
			report.Profile = made[i].profile
		}
	}
	sort.Float64s(report.SetupMs)
	report.Connected = len(report.SetupMs)
	return report, nil
}

// Everybody who is connected talks, at phases of the 20 ms that are random and the same each time.
func (l *load) talk(given order) (*figures, error) {
	var talkers []*caller
	for _, c := range l.callers {
		if c.ready.Load() {
			talkers = append(talkers, c)
		}
	}
	interval := time.Duration(given.IntervalMs * float64(time.Millisecond))
	if len(talkers) == 0 || interval <= 0 {
		return nil, errors.New("nobody to talk, or no interval")
	}
	packets := int(given.Seconds * float64(time.Second) / float64(interval))
	usage := cpu()
	began := time.Now()
	s := newSpeaker(l.speech, talkers, packets, interval, given.Loss)
	done := make(chan []float64)
	go func() { done <- s.run() }()
	own := <-done
	result := &figures{Seconds: time.Since(began).Seconds(), OwnP99: percentile(own, 99)}
	result.OwnCPU = (cpu() - usage).Seconds() / result.Seconds
	time.Sleep(drain)
	warm := int(given.WarmS * float64(time.Second) / float64(interval))
	for _, c := range talkers {
		result.add(&c.book, warm, int(tailSpan/interval))
	}
	result.conclude()
	return result, nil
}

func (l *load) hangUp() int {
	gone := l.callers
	l.callers = nil
	each(gone, closing, func(c *caller) error {
		c.close()
		l.reader.drop(c)
		if c.id == "" {
			return nil
		}
		return l.api.hangUp(c.id)
	})
	return len(gone)
}

// `work` on each caller, `atOnce` of them at a time; its errors in their order.
func each(callers []*caller, atOnce int, work func(*caller) error) []error {
	errs := make([]error, len(callers))
	var group sync.WaitGroup
	room := make(chan struct{}, max(1, atOnce))
	for i, c := range callers {
		room <- struct{}{}
		group.Add(1)
		go func(i int, c *caller) {
			defer group.Done()
			errs[i] = work(c)
			<-room
		}(i, c)
	}
	group.Wait()
	return errs
}

func cpu() time.Duration {
	var usage syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func readPackets(file string) ([][]byte, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var packets [][]byte
	for len(data) >= 2 {
		size := int(binary.BigEndian.Uint16(data))
		if size == 0 || len(data) < 2+size {
			return nil, fmt.Errorf("%s: cut short", file)
		}
		packets = append(packets, data[2:2+size])
		data = data[2+size:]
	}
	if len(packets) == 0 {
		return nil, fmt.Errorf("%s: empty", file)
	}
	return packets, nil
}

func fingerprintOf(certificate tls.Certificate) string {
	digest := sha256.Sum256(certificate.Certificate[0])
	parts := make([]string, len(digest))
	for i, octet := range digest {
		parts[i] = fmt.Sprintf("%02X", octet)
	}
	return strings.Join(parts, ":")
}
