// The steps of a call's set-up: when each was reached, and why it stands still. Pure.

/** Of a call that was asked for at `clicked`, in `performance.now()` ms; the microphone is there. */
export function begun(clicked) {
  const later = { offer: null, answer: null, ice: null, dtls: null, channel: null };
  return { click: clicked, microphone: performance.now(), ...later, first_audio: null };
}

/** Why a call gets no further than `timeline`; `answer` is the server's. */
export function stuck(timeline, answer) {
  if (timeline.ice) return "The relay was reached, but encryption could not be set up.";
  const relay = /^a=candidate:\S+ \d+ \S+ \d+ (\S+) (\d+)/m.exec(answer);
  const where = relay ? `${relay[1]} port ${relay[2]}` : "the relay";
  return `Nothing came back from ${where} over UDP. A firewall may be in the way.`;
}
