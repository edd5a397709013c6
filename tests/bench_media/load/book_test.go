package main

import (
	"testing"

	"github.com/pion/rtp"
)

const ms = int64(1e6)

func talk(b *book, packets int) {
	b.begin(1000, packets)
	for number := 0; number < packets; number++ {
		b.wrote(int64(number) * 20 * ms)
	}
}

func answer(b *book, timestamp uint32, at int64) {
	b.returned(&rtp.Header{Timestamp: timestamp, SSRC: 7}, make([]byte, 80), at)
}

func read(b *book, from, tail int) figures {
	var f figures
	f.add(b, from, tail)
	f.conclude()
	return f
}

func TestLatenessIsFromTheFirstAnswer(t *testing.T) {
	var b book
	talk(&b, 3)
	for number, late := range []int64{0, 4, -1} {
		answer(&b, 1000+960*uint32(number), (int64(number)*20+5+late)*ms)
	}
	f := read(&b, 0, 0)
	if f.LateMax != 4 || f.LateP50 != 0 || f.TripP50 != 5 || f.Loss != 0 || f.Octets != 80 {
		t.Fatalf("%+v", f)
	}
}

func TestALateSpeakerMakesNobodyLate(t *testing.T) {
	var b book
	talk(&b, 2)
	b.sent[1] += 30 * ms
	answer(&b, 1000, 5*ms)
	answer(&b, 1960, 55*ms)
	if f := read(&b, 0, 0); f.LateMax != 0 {
		t.Fatalf("%+v", f)
	}
}

func TestTimestampsOfItsOwnAreCountedFromTheFirst(t *testing.T) {
	var b book
	talk(&b, 3)
	answer(&b, 5, 90*ms)
	answer(&b, 5+2*960, 130*ms)
	if f := read(&b, 0, 0); f.Returned != 2 || f.Sent != 3 || f.TripP50 != 90 || f.Foreign != 0 {
		t.Fatalf("%+v", f)
	}
}

func TestAFirstAnswerThatCameIsNotTakenForPacketZero(t *testing.T) {
	var b book
	talk(&b, 3)
	answer(&b, 1000+960, 25*ms)
	f := read(&b, 0, 0)
	if b.back[1] == 0 || f.TripP50 != 5 || f.Returned != 1 {
		t.Fatalf("%v %+v", b.back, f)
	}
}

func TestSpanLeavesOutBothEnds(t *testing.T) {
	var b book
	talk(&b, 10)
	answer(&b, 1000, 5*ms)
	if f := read(&b, 2, 3); f.Sent != 5 || f.Loss != 1 || f.All != 10 {
		t.Fatalf("%+v", f)
	}
}

func TestWhatAnswersNothingIsForeign(t *testing.T) {
	var b book
	talk(&b, 2)
	for _, timestamp := range []uint32{1000, 1000, 1000 + 960*5} {
		answer(&b, timestamp, 5*ms)
	}
	if f := read(&b, 0, 0); f.Foreign != 2 || f.Back != 1 {
		t.Fatalf("%+v", f)
	}
}

func TestSilenceIsOneCallThatHeardNothing(t *testing.T) {
	var b book
	talk(&b, 2)
	if f := read(&b, 0, 0); f.Silent != 1 || f.Loss != 1 || f.LateP99 != 0 {
		t.Fatalf("%+v", f)
	}
}

func TestFecIsAFlagOfTheSilkPart(t *testing.T) {
	for _, given := range []struct {
		payload []byte
		fec     bool
	}{
		{[]byte{0x48, 0xc0}, true},  // SILK, wideband, 20 ms, mono
		{[]byte{0x48, 0x80}, false}, // voice, no FEC
		{[]byte{0x78, 0x40}, true},  // hybrid, fullband
		{[]byte{0xf8, 0xff}, false}, // CELT only
		{[]byte{0x48}, false},
	} {
		if hasFec(given.payload) != given.fec {
			t.Errorf("% x", given.payload)
		}
	}
}
