// Figures out of an RTCStatsReport. Pure: a report in, plain values out; null where it is silent.

/** Everything the page and tests read. Times in ms, counts since the call began. */
export function read(report) {
  const all = [...report.values()];
  const one = (type, test = () => true) => all.find((s) => s.type === type && test(s)) ?? {};
  const audio = (s) => s.kind === "audio";
  const inbound = one("inbound-rtp", audio);
  const outbound = one("outbound-rtp", audio);
  const remote = one("remote-inbound-rtp", audio);
  const source = one("media-source", audio); // the microphone; without figures in some browsers
  const transport = one("transport");
  const pair =
    report.get?.(transport.selectedCandidatePairId) ??
    one("candidate-pair", (s) => s.selected || (s.nominated && s.state === "succeeded"));
  const concealed = (inbound.concealedSamples ?? 0) - (inbound.silentConcealedSamples ?? 0);
  return {
    ice: transport.iceState ?? null,
    dtls: transport.dtlsState ?? null,
    rtt_ms: milliseconds(pair.currentRoundTripTime ?? remote.roundTripTime),
    jitter_ms: milliseconds(inbound.jitter),
    packets: { up: outbound.packetsSent ?? 0, down: inbound.packetsReceived ?? 0 },
    lost: { up: remote.packetsLost ?? 0, down: inbound.packetsLost ?? 0 },
    samples: inbound.totalSamplesReceived ?? 0,
    concealed_samples: concealed,
    audio_energy: inbound.totalAudioEnergy ?? null,
    heard: sound(inbound),
    said: sound(source),
    local: address(report.get?.(pair.localCandidateId)),
    remote: address(report.get?.(pair.remoteCandidateId)),
  };
}

/** Sound so far, to be compared with that of another moment: its energy, and its length in s. */
function sound({ totalAudioEnergy: energy, totalSamplesDuration: seconds }) {
  return energy === undefined || seconds === undefined ? null : { energy, seconds };
}

function milliseconds(seconds) {
  return seconds === undefined ? null : Math.round(seconds * 10000) / 10;
}

function address(candidate) {
  const host = candidate?.address ?? candidate?.ip;
  if (!host) return null;
  return host.includes(":") ? `[${host}]:${candidate.port}` : `${host}:${candidate.port}`;
}
