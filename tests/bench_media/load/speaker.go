package main

import (
	"math/rand"
	"runtime"
	"sort"
	"syscall"
	"time"

	"github.com/pion/rtcp"
	"github.com/pion/rtp"
)

const (
	payloadType = 111
	reportEvery = 50 // packets; the first report goes after 5
)

// One thread that speaks for all.
type speaker struct {
	speech   [][]byte
	talkers  []*caller
	phases   []time.Duration // sorted, one for each talker
	packets  int
	interval time.Duration
	fraction uint8 // lost, of 256, in reports
	headers  []rtp.Header
	begin    []int // where in the recording each begins
	cipher   [largest]byte
}

func newSpeaker(speech [][]byte, talkers []*caller, packets int, interval time.Duration, loss float64) *speaker {
	random := rand.New(rand.NewSource(1))
	s := &speaker{speech: speech, talkers: talkers, packets: packets, interval: interval}
	s.fraction = uint8(loss * 256)
	for _, c := range talkers {
		s.phases = append(s.phases, time.Duration(random.Int63n(int64(interval))))
		s.begin = append(s.begin, random.Intn(len(speech)))
		header := rtp.Header{
			Version: 2, PayloadType: payloadType, SSRC: c.ssrc,
			SequenceNumber: c.sequence, Timestamp: c.timestamp,
		}
		s.headers = append(s.headers, header)
		c.book.begin(header.Timestamp, packets)
	}
	sort.Slice(s.phases, func(a, b int) bool { return s.phases[a] < s.phases[b] })
	return s
}

// How late each packet went out, in ms.
func (s *speaker) run() []float64 {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	late := make([]float64, 0, s.packets*len(s.talkers))
	began := now() + int64(20*time.Millisecond)
	for number := 0; number < s.packets; number++ {
		for i, c := range s.talkers {
			due := began + int64(number)*int64(s.interval) + int64(s.phases[i])
			sleepUntil(due)
			at := now()
			late = append(late, float64(at-due)/1e6)
			s.speak(i, c, number, at)
		}
		s.consent(number)
	}
	for i, c := range s.talkers { // the next talk goes on where this one ended
		c.sequence, c.timestamp = s.headers[i].SequenceNumber, s.headers[i].Timestamp
	}
	return late
}

func (s *speaker) speak(i int, c *caller, number int, at int64) {
	header := &s.headers[i]
	payload := s.speech[(s.begin[i]+number)%len(s.speech)]
	var plain [largest]byte
	size, err := header.MarshalTo(plain[:])
	if err == nil {
		size += copy(plain[size:], payload)
		var cipher []byte
		if cipher, err = c.outbound.EncryptRTP(s.cipher[:0], plain[:size], header); err == nil {
			c.book.wrote(at)
			c.send(cipher)
		}
	}
	header.SequenceNumber++
	header.Timestamp += samplesPerPacket
	if number%reportEvery == 5 {
		s.report(c)
	}
}

// A receiver report, RFC 3550 section 6.4.2.
func (s *speaker) report(c *caller) {
	c.book.mutex.Lock()
	heard, ssrc, sequence := c.book.heard, c.book.ssrc, c.book.sequence
	c.book.mutex.Unlock()
	if !heard {
		return
	}
	block := rtcp.ReceptionReport{SSRC: ssrc, FractionLost: s.fraction, LastSequenceNumber: uint32(sequence)}
	plain, err := (&rtcp.ReceiverReport{SSRC: c.ssrc, Reports: []rtcp.ReceptionReport{block}}).Marshal()
	if err != nil {
		return
	}
	if cipher, err := c.outbound.EncryptRTCP(nil, plain, nil); err == nil {
		c.send(cipher)
	}
}

// A few callers' checks after each packet: everybody's within `consentEvery`.
func (s *speaker) consent(number int) {
	every := int(consentEvery / s.interval)
	for i := number % every; i < len(s.talkers); i += every {
		s.talkers[i].check()
	}
}

func sleepUntil(due int64) {
	if wait := due - now(); wait > int64(20*time.Microsecond) {
		span := syscall.NsecToTimespec(wait)
		syscall.Nanosleep(&span, nil)
	}
}
