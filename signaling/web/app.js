// The page: buttons, words and figures around one `Call`. Tests drive it by `window.ferryline`.

import { Call } from "./call.js";
import { Meter } from "./meter.js";
import * as server from "./server.js";

const FIGURES_MS = 500;
const PATH_MS = 2000;
const RAW = { echoCancellation: false, noiseSuppression: false, autoGainControl: false };
const ACTIVE = ["asking", "calling", "connected", "recovering"];
const WAYS = {
  kernel: ["in the kernel", "An XDP program forwards every packet; user space sees none of them."],
  user: ["in user space", "A process of the relay forwards every packet."],
  unknown: ["unknown", "No relay tells: it has no admin address here, or it did not answer."],
};
const REASONS = {
  socket_datapath: "it runs the socket datapath",
  no_nexthop_in: "the way to the transceiver is not resolved yet",
  no_nexthop_out: "the way to you is not resolved yet",
};
const MICROPHONE = {
  NotAllowedError: "The microphone was refused. Allow it beside the address bar, then press Talk.",
  NotFoundError: "No microphone was found. Plug one in, then press Talk.",
  NotReadableError: "The microphone is in use by another program. Close that, then press Talk.",
};

const $ = (id) => document.getElementById(id);
const meter = new Meter();
let call = null;
let starting = null;
let microphone = null; // the track that is sent; stopped at the end only if we asked for it
let way = null;
let timeline = { click: null, answer: null, ice: null, dtls: null, channel: null, first_audio: null };

// ---- a call begins, changes, ends ----

function start(options = {}) {
  starting ??= begin(options.audio, performance.now()).finally(() => (starting = null));
  return starting;
}

async function begin(audio, clicked) {
  if (call) return;
  notice();
  show("asking", "Asking for the microphone…");
  try {
    microphone = await open(audio);
  } catch (error) {
    const why = MICROPHONE[error.name] ?? `The microphone cannot be used: ${error.message}`;
    show("idle", "Not connected.");
    notice(why);
    throw new Error(why, { cause: error });
  }
  call = new Call(microphone.track, clicked);
  call.addEventListener("state", ({ detail }) => changed(detail));
  call.addEventListener("track", ({ detail }) => play(detail));
  call.addEventListener("timeline", drawPhases);
  call.addEventListener("trouble", ({ detail }) => notice(detail));
  meter.follow("in", microphone.track);
  await call.start();
}

/** The track to send: what a test gives, else the microphone. */
async function open(audio) {
  if (audio instanceof MediaStreamTrack) return { track: audio, ours: false };
  if (audio instanceof MediaStream) return { track: audio.getAudioTracks()[0], ours: false };
  const raw = new URLSearchParams(location.search).get("raw") === "1";
  const stream = await navigator.mediaDevices.getUserMedia({ audio: audio ?? (raw ? RAW : true) });
  return { track: stream.getAudioTracks()[0], ours: true };
}

function changed({ state, message }) {
  if (state === "connected") askWay();
  if (state !== "failed" && state !== "ended") return show(state, message);
  timeline = call.timeline;
  if (microphone?.ours) microphone.track.stop();
  microphone = null;
  call = null;
  way = null;
  meter.close();
  $("player").srcObject = null;
  show("idle", state === "failed" ? "Not connected." : message);
  if (state === "failed") notice(message);
  drawWay();
}

function play(track) {
  $("player").srcObject = new MediaStream([track]);
  $("player").play().catch(() => notice("The browser holds the sound back. Click anywhere to hear it."));
  meter.follow("out", track);
}

function stop() {
  call?.stop();
}

function mute() {
  if (!microphone) return;
  microphone.track.enabled = !microphone.track.enabled;
  drawMute();
}

// ---- what is shown ----

function show(state, message) {
  const before = document.body.dataset.state;
  document.body.dataset.state = state;
  if ($("status").textContent !== message) $("status").textContent = message;
  const active = ACTIVE.includes(state);
  $("talk").disabled = active || state === "blocked";
  $("mute").disabled = !active || state === "asking";
  $("hangup").disabled = !active || state === "asking";
  drawMute();
  if (before === "asking" && state === "calling") $("hangup").focus();
  if (ACTIVE.includes(before) && state === "idle") $("talk").focus();
}

function drawMute() {
  const muted = microphone?.track.enabled === false;
  $("mute").setAttribute("aria-pressed", String(muted));
  $("mute").textContent = muted ? "Unmute" : "Mute";
  document.body.toggleAttribute("data-muted", muted);
  const connected = call?.speaking ? "Speaking" : "Listening";
  const label = { asking: "Asking…", calling: "Calling…", connected, recovering: "One moment…" };
  $("talk-label").textContent = (muted && call ? "Muted" : label[document.body.dataset.state]) ?? "Talk";
}

function notice(text) {
  $("notice").hidden = !text;
  $("notice").textContent = text ?? "";
}

function drawLevels() {
  const [up, down] = [meter.level("in"), meter.level("out")];
  $("level-in").style.setProperty("--level", up.toFixed(3));
  $("level-out").style.setProperty("--level", down.toFixed(3));
  $("talk").style.setProperty("--level", Math.max(up, down).toFixed(3));
  requestAnimationFrame(drawLevels);
}

async function drawFigures() {
  for (const name of ["in", "out"]) {
    $(`level-${name}`).setAttribute("aria-valuenow", Math.round(meter.level(name) * 100));
  }
  if (!call) return;
  const figures = await call.stats();
  const share = figures.samples ? (100 * figures.concealed_samples) / figures.samples : null;
  $("rtt").textContent = figures.rtt_ms === null ? "–" : `${figures.rtt_ms} ms`;
  $("concealed").textContent = share === null ? "–" : `${share.toFixed(1)} %`;
  $("up").textContent = figures.packets.up;
  $("down").textContent = figures.packets.down;
  $("lost").textContent = Math.max(0, figures.lost.up) + Math.max(0, figures.lost.down);
  $("restarts").textContent = figures.restarts;
}

async function askWay() {
  const asked = call;
  if (!asked?.location || document.hidden) return;
  const answer = await server.path(asked.location);
  if (call !== asked) return;
  way = answer ?? { path: "unknown" };
  drawWay();
}

function drawWay() {
  const [name, text] = way ? (WAYS[way.path] ?? WAYS.unknown) : ["–", "Shown once you are in a call."];
  $("way").dataset.path = way?.path ?? "none";
  $("way-client").textContent = breakable(way?.client ?? "browser");
  $("way-relay").textContent = name;
  $("way-endpoint").textContent = breakable(way?.endpoint ?? "–");
  $("way-text").textContent = way?.ingress ? `${text} ${because(way)}` : text;
}

function because({ ingress, vip, reason }) {
  return `Relay ${ingress}, ${vip}${reason ? `; ${REASONS[reason] ?? reason}` : ""}.`;
}

/** An address that a narrow column may break before its port. */
function breakable(address) {
  return address.replace(/:(\d+)$/, "\u200b:$1");
}

function drawPhases() {
  const { click, ...later } = call.timeline;
  const phases = { microphone: call.placed, ...later };
  const end = Math.max(...Object.values(phases)) - click; // null counts as 0
  let before = click;
  for (const [phase, at] of Object.entries(phases)) {
    const row = document.querySelector(`[data-phase="${phase}"]`);
    const share = at === null ? 0 : Math.max(at - before, 0) / end;
    const from = share >= 1 ? 0 : Math.max(Math.min(before, at ?? before) - click, 0) / end / (1 - share);
    row.style.setProperty("--share", share.toFixed(3));
    row.style.setProperty("--from", Math.min(from, 1).toFixed(3));
    row.querySelector("b").textContent = at === null ? "–" : `${Math.round(at - click)} ms`;
    before = Math.max(before, at ?? before);
  }
}

/** Say why there is no microphone, and what to do, before anybody presses anything. */
function explainInsecure() {
  const { hostname, host, port } = location;
  const here = `http://localhost${port ? `:${port}` : ""}`;
  show("blocked", "The microphone is locked on this address.");
  const box = $("notice");
  box.hidden = false;
  box.innerHTML =
    "<p>Browsers give the microphone only to <code>http://localhost</code> and to https pages; this page came from <code></code>. Either</p>" +
    "<ul><li>open <code></code> on the machine that serves it, or</li>" +
    "<li>have it serve https: <code></code></li></ul>";
  const [, from, local, command] = box.querySelectorAll("code");
  from.textContent = `http://${host}`;
  local.textContent = here;
  command.textContent = `signaling serve --tls-self-signed ${hostname}`;
}

$("talk").addEventListener("click", () => start().catch(() => {})); // the page has said why
$("hangup").addEventListener("click", stop);
$("mute").addEventListener("click", mute);
addEventListener("pagehide", stop);
addEventListener("click", () => $("player").srcObject && $("player").play().catch(() => {}));
setInterval(drawFigures, FIGURES_MS);
setInterval(askWay, PATH_MS);
requestAnimationFrame(drawLevels);
if (!isSecureContext || !navigator.mediaDevices) explainInsecure();

window.ferryline = {
  start,
  stop,
  restart: () => call?.restart(),
  stats: async () => ({ ...(await call?.stats()), path: way?.path ?? "unknown" }),
  get pc() {
    return call?.pc ?? null;
  },
  get callId() {
    return call?.callId ?? null;
  },
  get timeline() {
    return call?.timeline ?? timeline; // of the last call
  },
};
