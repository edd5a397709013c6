// Many WebRTC callers on one core: they speak recorded Opus to a server and keep book of what comes
// back. One generator for every server that is measured, so what it costs is no part of a ratio.
//
//	load -url http://10.99.0.1:5000/v1/calls -host 10.99.0.2 -packets speech.opus
//
// It obeys commands on stdin, one JSON object a line (see `order`), and answers each with a line.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"runtime"
	"runtime/debug"
)

// One command. `connect`: calls, at_once, offers_first. `talk`: seconds, warm_s, interval_ms, loss.
// `close`: nothing. Times are seconds unless their names say otherwise.
type order struct {
	Op          string  `json:"op"`
	Calls       int     `json:"calls"`
	AtOnce      int     `json:"at_once"`      // set-ups under way
	OffersFirst bool    `json:"offers_first"` // every offer is answered before the first check goes out
	Seconds     float64 `json:"seconds"`      // of talk
	WarmS       float64 `json:"warm_s"`       // of it, that no figure is of
	IntervalMs  float64 `json:"interval_ms"`  // between packets of one call
	Loss        float64 `json:"loss"`         // share that receiver reports claim
}

func main() {
	url := flag.String("url", "", "where to POST offers")
	token := flag.String("token", "", "bearer token of that place")
	vip := flag.String("vip", "", "address:port to ask for in the answer")
	host := flag.String("host", "", "our IPv4 address")
	packets := flag.String("packets", "", "file of Opus packets, a big-endian 16-bit length before each")
	flag.Parse()
	runtime.GOMAXPROCS(4) // threads that wait in system calls are not to hold the others up
	debug.SetGCPercent(400)
	load, err := newLoad(&api{url: *url, token: *token, vip: *vip}, *host, *packets)
	if err != nil {
		log.Fatal(err)
	}
	answers := json.NewEncoder(os.Stdout)
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var given order
		answer, err := any(nil), json.Unmarshal(lines.Bytes(), &given)
		if err == nil {
			answer, err = load.obey(given)
		}
		if err != nil {
			answer = map[string]string{"error": err.Error()}
		}
		if err := answers.Encode(answer); err != nil {
			log.Fatal(err)
		}
	}
	load.hangUp()
}

func (l *load) obey(given order) (any, error) {
	switch given.Op {
	case "connect":
		return l.connect(given)
	case "talk":
		return l.talk(given)
	case "close":
		return map[string]int{"closed": l.hangUp()}, nil
	}
	return nil, fmt.Errorf("unknown op %q", given.Op)
}
