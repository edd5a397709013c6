// Pion's echo to compare with: what its `reflect` example does, for audio, behind the control API of
// the bench. It sends each packet back as it came, without a codec.
//
//	pion_echo -listen 10.99.0.1:5000
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"net/http"
	"strings"
	"sync"

	"github.com/pion/interceptor"
	"github.com/pion/webrtc/v3"
)

type server struct {
	api   *webrtc.API
	mutex sync.Mutex
	calls map[string]*webrtc.PeerConnection
	made  int
}

func main() {
	listen := flag.String("listen", "", "address:port of the control API; media ports are the kernel's choice")
	flag.Parse()
	media, interceptors := &webrtc.MediaEngine{}, &interceptor.Registry{}
	must(media.RegisterDefaultCodecs())
	must(webrtc.RegisterDefaultInterceptors(media, interceptors))
	api := webrtc.NewAPI(webrtc.WithMediaEngine(media), webrtc.WithInterceptorRegistry(interceptors))
	s := &server{api: api, calls: map[string]*webrtc.PeerConnection{}}
	http.HandleFunc("/healthz", func(http.ResponseWriter, *http.Request) {})
	http.HandleFunc("/v1/calls", s.create)
	http.HandleFunc("/v1/calls/", s.hangUp)
	log.Fatal(http.ListenAndServe(*listen, nil))
}

func (s *server) create(writer http.ResponseWriter, request *http.Request) {
	var body struct{ Offer string }
	err := json.NewDecoder(request.Body).Decode(&body)
	if err == nil {
		var call *webrtc.PeerConnection
		if call, err = s.answer(body.Offer); err == nil {
			reply := map[string]string{"id": s.keep(call), "answer": call.LocalDescription().SDP}
			writer.WriteHeader(http.StatusCreated)
			json.NewEncoder(writer).Encode(reply)
			return
		}
	}
	http.Error(writer, err.Error(), http.StatusBadRequest)
}

func (s *server) answer(offer string) (*webrtc.PeerConnection, error) {
	call, err := s.api.NewPeerConnection(webrtc.Configuration{})
	if err != nil {
		return nil, err
	}
	if err := answer(call, offer); err != nil {
		call.Close()
		return nil, err
	}
	return call, nil
}

func answer(call *webrtc.PeerConnection, offer string) error {
	opus := webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypeOpus}
	back, err := webrtc.NewTrackLocalStaticRTP(opus, "audio", "pion")
	if err != nil {
		return err
	}
	sender, err := call.AddTrack(back)
	if err != nil {
		return err
	}
	go func() { // interceptors see RTCP as it is read
		buffer := make([]byte, 1500)
		for {
			if _, _, err := sender.Read(buffer); err != nil {
				return
			}
		}
	}()
	call.OnTrack(func(track *webrtc.TrackRemote, _ *webrtc.RTPReceiver) {
		for {
			packet, _, err := track.ReadRTP()
			if err != nil || back.WriteRTP(packet) != nil {
				return
			}
		}
	})
	offered := webrtc.SessionDescription{Type: webrtc.SDPTypeOffer, SDP: offer}
	if err := call.SetRemoteDescription(offered); err != nil {
		return err
	}
	description, err := call.CreateAnswer(nil)
	if err != nil {
		return err
	}
	gathered := webrtc.GatheringCompletePromise(call)
	if err := call.SetLocalDescription(description); err != nil {
		return err
	}
	<-gathered
	return nil
}

func (s *server) keep(call *webrtc.PeerConnection) string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.made++
	id := fmt.Sprint(s.made)
	s.calls[id] = call
	return id
}

func (s *server) hangUp(writer http.ResponseWriter, request *http.Request) {
	id := strings.TrimPrefix(request.URL.Path, "/v1/calls/")
	s.mutex.Lock()
	call := s.calls[id]
	delete(s.calls, id)
	s.mutex.Unlock()
	if call == nil || request.Method != http.MethodDelete {
		http.NotFound(writer, request)
		return
	}
	call.Close()
	writer.WriteHeader(http.StatusNoContent)
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
