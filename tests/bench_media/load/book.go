package main

import (
	"sort"
	"sync"
	"time"

	"github.com/pion/rtp"
)

const samplesPerPacket = 960 // 20 ms at 48 kHz

// What one caller sent and got back in one talk.
type book struct {
	mutex sync.Mutex
	account
}

// `sent` and `back` are by number of packet, in nanoseconds since 1970.
type account struct {
	timestamp uint32  // of packet 0, as sent
	sent      []int64 // when
	back      []int64 // when its answer arrived, 0: never
	heard     bool
	ssrc      uint32 // the server's
	theirs    uint32 // timestamp of its first packet
	first     int    // number of the packet that this answered
	sequence  uint16 // its newest
	octets    int    // of payload that came back
	packets   int
	withFec   int // of them
	foreign   int // packets that answer none of ours, or one that was answered
}

func (b *book) begin(timestamp uint32, packets int) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.account = account{timestamp: timestamp, sent: make([]int64, 0, packets), back: make([]int64, packets)}
}

func (b *book) wrote(at int64) {
	b.mutex.Lock()
	b.sent = append(b.sent, at)
	b.mutex.Unlock()
}

// A server that keeps the caller's timestamps says which packet it answers. One with its own, as
// stock aiortc, answers packet 0 first and counts on from there.
func (b *book) returned(header *rtp.Header, payload []byte, at int64) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if b.back == nil {
		return
	}
	if !b.heard {
		b.heard, b.ssrc, b.theirs = true, header.SSRC, header.Timestamp
		if kept := header.Timestamp - b.timestamp; kept%samplesPerPacket == 0 &&
			int(kept/samplesPerPacket) < len(b.sent) {
			b.first = int(kept / samplesPerPacket)
		}
	}
	b.sequence = header.SequenceNumber
	number := b.first + int(int32(header.Timestamp-b.theirs))/samplesPerPacket
	if number < 0 || number >= len(b.back) || b.back[number] != 0 {
		b.foreign++
		return
	}
	b.back[number] = at
	b.octets += len(payload)
	b.packets++
	if hasFec(payload) {
		b.withFec++
	}
}

// The figures of one talk: packets from `from` on, without the last `tail`. Lateness of an answer is
// its arrival less that of the call's first answer and less the time between sending the two, which
// is 20 ms a packet as far as the speaker keeps to it.
type figures struct {
	Sent     int     `json:"sent"`     // in the span that is measured
	Returned int     `json:"returned"` // of them
	All      int     `json:"all"`      // packets sent in the whole talk
	Back     int     `json:"back"`     // that came back in the whole talk
	Foreign  int     `json:"foreign"`
	Silent   int     `json:"silent"` // calls that heard nothing
	Loss     float64 `json:"loss"`
	LateP50  float64 `json:"late_p50_ms"`
	LateP99  float64 `json:"late_p99_ms"`
	LateMax  float64 `json:"late_max_ms"`
	TripP50  float64 `json:"trip_p50_ms"`
	TripP99  float64 `json:"trip_p99_ms"`
	OwnP99   float64 `json:"own_late_p99_ms"` // how late the generator was itself
	Fec      float64 `json:"fec"`             // share of the packets that carry FEC data
	Octets   float64 `json:"octets"`          // of payload a packet, mean
	Seconds  float64 `json:"seconds"`
	OwnCPU   float64 `json:"own_cpu"` // share of a core
	late     []float64
	trip     []float64
}

func (f *figures) add(b *book, from, tail int) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	f.All += len(b.sent)
	f.Back += b.packets
	f.Foreign += b.foreign
	f.Octets += float64(b.octets)
	f.Fec += float64(b.withFec)
	if !b.heard {
		f.Silent++
	}
	for number := from; number < len(b.sent)-tail; number++ {
		f.Sent++
		at := b.back[number]
		if at == 0 {
			continue
		}
		f.Returned++
		due := b.back[b.first] + b.sent[number] - b.sent[b.first]
		f.late = append(f.late, float64(at-due)/1e6)
		f.trip = append(f.trip, float64(at-b.sent[number])/1e6)
	}
}

func (f *figures) conclude() {
	if f.Sent > 0 {
		f.Loss = 1 - float64(f.Returned)/float64(f.Sent)
	}
	if f.Back > 0 {
		f.Octets /= float64(f.Back)
		f.Fec /= float64(f.Back)
	}
	f.LateP50, f.LateP99, f.LateMax = percentile(f.late, 50), percentile(f.late, 99), percentile(f.late, 100)
	f.TripP50, f.TripP99 = percentile(f.trip, 50), percentile(f.trip, 99)
}

// Whether an Opus packet of one mono frame of 20 ms carries a coarse copy of the frame before: its
// SILK part begins with a flag of voice activity and then that one, RFC 6716 section 4.2.3.
func hasFec(payload []byte) bool {
	const celtOnly, stereo, oneFrame = 0x80, 0x04, 0x03
	return len(payload) > 1 && payload[0]&(celtOnly|stereo|oneFrame) == 0 && payload[1]&0x40 != 0
}

// Sorts `values`; 0 for none.
func percentile(values []float64, percent float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sort.Float64s(values)
	at := int(percent / 100 * float64(len(values)))
	if at >= len(values) {
		at = len(values) - 1
	}
	return values[at]
}

func now() int64 { return time.Now().UnixNano() }
