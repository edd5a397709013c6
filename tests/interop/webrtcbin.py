"""GStreamer's `webrtcbin`: an RSA certificate, libnice, its own data channel.

Its Python bindings are Debian's; nothing of it is imported before it is used.
"""

import asyncio
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from tests.interop.conversation import Talker
from tests.interop.microphone import FRAME, Microphone
from tests.lab import speech

_RAW = f"audio/x-raw,format=S16LE,layout=interleaved,channels=1,rate={speech.RATE}"
_PIPELINE = (
    "webrtcbin name=rtc bundle-policy=max-bundle "
    f"appsrc name=mouth is-live=true format=time caps={_RAW} "
    "! audioconvert ! opusenc frame-size=20 ! rtpopuspay pt=111 "
    "! application/x-rtp,media=audio,encoding-name=OPUS,payload=111 ! rtc."
)
_EAR = (
    "rtpopusdepay ! opusdec plc=true ! audioconvert ! audioresample "
    f"! {_RAW} ! appsink name=ear emit-signals=true sync=false"
)


class Webrtcbin(Talker):
    def __init__(self, url: str, key: str, microphone: Path) -> None:
        super().__init__()
        import gi

        for name in ("Gst", "GstWebRTC", "GstSdp"):
            gi.require_version(name, "1.0")
        from gi.repository import GLib, Gst, GstSdp, GstWebRTC

        Gst.init(None)
        self._gst, self._sdp, self._webrtc = Gst, GstSdp, GstWebRTC
        self._url, self._key = url, key
        self._microphone = Microphone(microphone)
        self._loop = GLib.MainLoop()
        self._pipeline = Gst.parse_launch(_PIPELINE)
        self._rtc = self._pipeline.get_by_name("rtc")
        self._wanted, self._opened = threading.Event(), threading.Event()
        self._closing = threading.Event()
        self._threads = [
            threading.Thread(target=self._loop.run, name="glib"),
            threading.Thread(target=self._speak, name="mouth"),
        ]

    async def connect(self) -> None:
        self._rtc.connect("pad-added", self._pad_added)
        self._rtc.connect("on-negotiation-needed", lambda _: self._wanted.set())
        self._pipeline.set_state(self._gst.State.READY)
        channel = self._rtc.emit("create-data-channel", "oai-events", None)
        channel.connect("on-open", lambda _: self._opened.set())
        channel.connect("on-message-string", lambda _, text: self.messages.append(text))
        self._channel = channel
        self._pipeline.set_state(self._gst.State.PLAYING)
        for thread in self._threads:
            thread.start()
        offer = await asyncio.to_thread(self._create_offer)
        async with httpx.AsyncClient(trust_env=False) as http:
            response = await http.post(
                f"{self._url}/v1/realtime/calls",
                content=offer,
                headers={
                    "Content-Type": "application/sdp",
                    "Authorization": f"Bearer {self._key}",
                },
            )
        response.raise_for_status()
        self.call_id = response.headers["location"].rpartition("/")[2]
        await asyncio.to_thread(self._take_answer, response.text)
        if not await asyncio.to_thread(self._opened.wait, 15.0):
            raise TimeoutError("the data channel does not open")

    async def hang_up(self) -> None:
        """By HTTP: webrtcbin says nothing when its pipeline ends."""
        async with httpx.AsyncClient(trust_env=False) as http:
            await http.delete(
                f"{self._url}/v1/realtime/calls/{self.call_id}",
                headers={"Authorization": f"Bearer {self._key}"},
            )
        self._closing.set()
        await asyncio.to_thread(self._pipeline.set_state, self._gst.State.NULL)
        self._loop.quit()

    def _create_offer(self) -> str:
        if not self._wanted.wait(10.0):
            raise TimeoutError("webrtcbin wants no negotiation")
        promise = self._gst.Promise.new()
        self._rtc.emit("create-offer", None, promise)
        promise.wait()
        reply = promise.get_reply()  # owns the offer
        offer = reply.get_value("offer")
        done = self._gst.Promise.new()
        self._rtc.emit("set-local-description", offer, done)
        done.wait()
        return str(offer.sdp.as_text())

    def _take_answer(self, text: str) -> None:
        _, message = self._sdp.SDPMessage.new_from_text(text)
        answer = self._webrtc.WebRTCSessionDescription.new(
            self._webrtc.WebRTCSDPType.ANSWER, message
        )
        done = self._gst.Promise.new()
        self._rtc.emit("set-remote-description", answer, done)
        done.wait()

    def _pad_added(self, _: Any, pad: Any) -> None:
        if pad.direction != self._gst.PadDirection.SRC:
            return
        ear = self._gst.parse_bin_from_description(_EAR, True)
        ear.get_by_name("ear").connect("new-sample", self._hear)
        self._pipeline.add(ear)
        ear.sync_state_with_parent()
        pad.link(ear.get_static_pad("sink"))

    def _hear(self, sink: Any) -> Any:
        buffer = sink.emit("pull-sample").get_buffer()
        pcm = np.frombuffer(buffer.extract_dup(0, buffer.get_size()), "<i2")
        self.keep(pcm.astype(np.float32) / speech.FULL_SCALE)
        return self._gst.FlowReturn.OK

    def _speak(self) -> None:
        mouth = self._pipeline.get_by_name("mouth")
        began, position = time.monotonic(), 0
        while not self._closing.is_set():
            buffer = self._gst.Buffer.new_wrapped(self._microphone.frame(self.speaking).tobytes())
            buffer.pts = position * self._gst.SECOND // speech.RATE
            buffer.duration = FRAME * self._gst.SECOND // speech.RATE
            mouth.emit("push-buffer", buffer)
            position += FRAME
            time.sleep(max(0.0, began + position / speech.RATE - time.monotonic()))
