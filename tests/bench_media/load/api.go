package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// The control API that each server has: POST an offer, DELETE the call.
type api struct {
	url, token, vip string
}

var httpClient = &http.Client{
	Timeout:   20 * time.Second,
	Transport: &http.Transport{MaxIdleConnsPerHost: 64, DialContext: (&net.Dialer{}).DialContext},
}

func (a *api) offer(sdp string) (id, answer string, err error) {
	body := map[string]any{"offer": sdp, "vips": []string{a.vip}, "dialect": "plain"}
	encoded, err := json.Marshal(body)
	if err != nil {
		return "", "", err
	}
	var made struct{ ID, Answer string }
	err = a.request(http.MethodPost, a.url, encoded, &made)
	return made.ID, made.Answer, err
}

func (a *api) hangUp(id string) error {
	return a.request(http.MethodDelete, a.url+"/"+id, nil, nil)
}

func (a *api) request(method, url string, body []byte, into any) error {
	request, err := http.NewRequest(method, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+a.token)
	response, err := httpClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode >= 300 {
		return fmt.Errorf("%s: %d %.200s", method, response.StatusCode, text)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(text, into)
}

// An audio call that offers nothing else; we are the DTLS client.
func offerOf(c *caller, fingerprint string) string {
	lines := []string{
		"v=0",
		fmt.Sprintf("o=- %d 1 IN IP4 127.0.0.1", c.ssrc),
		"s=-",
		"t=0 0",
		"a=group:BUNDLE 0",
		"m=audio 9 UDP/TLS/RTP/SAVPF 111",
		"c=IN IP4 0.0.0.0",
		"a=mid:0",
		"a=sendrecv",
		"a=rtcp-mux",
		"a=rtpmap:111 opus/48000/2",
		"a=fmtp:111 minptime=10;useinbandfec=1",
		"a=ice-ufrag:" + c.ufrag,
		"a=ice-pwd:" + c.password,
		"a=fingerprint:sha-256 " + fingerprint,
		"a=setup:active",
		fmt.Sprintf("a=msid:load %d", c.ssrc),
		fmt.Sprintf("a=ssrc:%d cname:load", c.ssrc),
		fmt.Sprintf("a=candidate:1 1 udp 2130706431 %s %d typ host", c.local.IP, c.local.Port),
		"a=end-of-candidates",
	}
	return strings.Join(lines, "\r\n") + "\r\n"
}

// What we need of an answer: credentials and the first IPv4 UDP candidate.
func readAnswer(sdp string) (ufrag, password string, at *net.UDPAddr, err error) {
	for _, line := range strings.Split(sdp, "\n") {
		line = strings.TrimSpace(line)
		key, value, _ := strings.Cut(strings.TrimPrefix(line, "a="), ":")
		switch key {
		case "ice-ufrag":
			ufrag = value
		case "ice-pwd":
			password = value
		case "candidate":
			words := strings.Fields(value)
			if at != nil || len(words) < 8 || words[1] != "1" || !strings.EqualFold(words[2], "udp") {
				continue
			}
			found, err := net.ResolveUDPAddr("udp4", net.JoinHostPort(words[4], words[5]))
			if err == nil {
				at = found
			}
		}
	}
	if ufrag == "" || password == "" || at == nil {
		return "", "", nil, fmt.Errorf("no credentials or no IPv4 candidate in the answer: %.300q", sdp)
	}
	return ufrag, password, at, nil
}
