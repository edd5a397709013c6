"""Does GStreamer's webrtcbin take our answers? For the interpreter of the system, which has its
bindings: `/usr/bin/python3 webrtcbin.py <argv of the answerer, as JSON>`; prints one JSON object.

Makes offers of several kinds, has each answered (offers in, answer out) and hands the answer in.
"""

import json
import subprocess
import sys
from typing import Any

AUDIO = (
    "audiotestsrc is-live=1 ! opusenc ! rtpopuspay pt=97 ! "
    "application/x-rtp,media=audio,encoding-name=OPUS,payload=97 ! w. "
)
VIDEO = (
    "videotestsrc is-live=1 ! vp8enc deadline=1 ! rtpvp8pay pt=96 ! "
    "application/x-rtp,media=video,encoding-name=VP8,payload=96 ! w. "
)
KINDS = {  # bundle policy, media, whether there is a data channel
    "audio": ("max-bundle", AUDIO, False),
    "channel": ("max-bundle", AUDIO, True),
    "video": ("max-bundle", AUDIO + VIDEO, True),
    "video_first": ("max-bundle", VIDEO + AUDIO, True),
    "no_bundle": ("none", AUDIO, True),
}
PATIENCE_S = 10


def exchange(policy: str, media: str, channel: bool, answerer: list[str]) -> dict[str, Any]:
    pipeline = Gst.parse_launch(f"webrtcbin name=w bundle-policy={policy} {media}")
    peer = pipeline.get_by_name("w")
    pipeline.set_state(Gst.State.READY)
    if channel:
        peer.emit("create-data-channel", "oai-events", None)
    needed = GLib.MainLoop()
    peer.connect("on-negotiation-needed", lambda _: needed.quit())
    GLib.timeout_add_seconds(PATIENCE_S, needed.quit)
    pipeline.set_state(Gst.State.PLAYING)
    needed.run()
    created = _asked(peer, "create-offer", None)
    reply = created.get_reply()  # both own what they hand out
    offer = reply.get_value("offer")
    _asked(peer, "set-local-description", offer)
    text = offer.sdp.as_text()
    offers = json.dumps([text]).encode()
    answer = subprocess.run(answerer, input=offers, capture_output=True, check=True).stdout.decode()
    _, message = GstSdp.SDPMessage.new_from_text(answer)
    kind = GstWebRTC.WebRTCSDPType.ANSWER
    described = GstWebRTC.WebRTCSessionDescription.new(kind, message)
    taken = _asked(peer, "set-remote-description", described)
    reply = taken.get_reply()
    state = peer.get_property("signaling-state").value_nick
    if reply is not None and reply.has_field("error"):
        state = str(reply.get_value("error"))
    pipeline.set_state(Gst.State.NULL)
    return {"offer": text, "answer": answer, "state": state}


def _asked(peer: Any, signal: str, argument: Any) -> Any:
    promise = Gst.Promise.new()
    peer.emit(signal, argument, promise)
    promise.wait()
    return promise


if __name__ == "__main__":
    import gi

    for library, version in (("Gst", "1.0"), ("GstWebRTC", "1.0"), ("GstSdp", "1.0")):
        gi.require_version(library, version)
    from gi.repository import GLib, Gst, GstSdp, GstWebRTC

    Gst.init(None)
    answering = json.loads(sys.argv[1])
    print(json.dumps({name: exchange(*kind, answering) for name, kind in KINDS.items()}))
