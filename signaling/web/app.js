// The page: one `Call` and the parts that show it. Tests drive it by `window.ferryline`.

import { Call } from "./call.js";
import { Conversation } from "./conversation.js";
import { $ } from "./dom.js";
import * as explain from "./explain.js";
import { History } from "./history.js";
import { Journal } from "./journal.js";
import { Microphone } from "./microphone.js";
import { Plots } from "./plots.js";
import * as server from "./server.js";
import { Setup } from "./setup.js";
import { Sound } from "./sound.js";
import { Stage } from "./stage.js";
import { drawCounts, drawSteering, drawWay } from "./way.js";

const FIGURES_MS = 1000;
const PATH_MS = 2000;
const EMPTY = { click: null, microphone: null, offer: null, answer: null, ice: null, dtls: null };

const microphone = new Microphone(new URLSearchParams(location.search).get("raw") === "1");
const stage = new Stage({ talk, hangUp, mute, hold, useKey });
const sound = new Sound(microphone, (text) => stage.notice(text));
const [conversation, journal, setup, plots] = [
  new Conversation(),
  new Journal(),
  new Setup(),
  new Plots(),
];
const history = new History();
let call = null;
let starting = null;
let way = null;
let timeline = { ...EMPTY, channel: null, first_audio: null };

// ---- a call begins, changes, ends ----

function start(options = {}) {
  starting ??= begin(options.audio, performance.now()).finally(() => (starting = null));
  return starting;
}

async function begin(audio, clicked) {
  if (call) return;
  stage.notice();
  stage.askKey(false);
  show("asking", "Asking for the microphone…");
  try {
    await microphone.open(audio);
  } catch (error) {
    show("idle", "Not connected.");
    const { text, steps } = isSecureContext
      ? explain.microphone(error)
      : explain.insecure(location);
    stage.notice(text, steps);
    throw new Error(text, { cause: error });
  }
  if (stage.idle) return microphone.close(); // hung up meanwhile
  call = new Call(microphone.track, clicked);
  call.addEventListener("state", ({ detail }) => changed(detail));
  call.addEventListener("track", ({ detail }) => sound.play(detail));
  call.addEventListener("timeline", reached);
  call.addEventListener("trouble", ({ detail }) => stage.notice(detail));
  call.addEventListener("event", ({ detail }) => noted(detail));
  conversation.begin((event) => call?.send(event) ?? false);
  journal.begin(clicked);
  history.clear();
  sound.said(microphone.track);
  await call.start();
}

function changed({ state, message, error }) {
  const over = state === "failed" || state === "ended";
  if (over) close();
  if (state === "failed") fail(error, message);
  show(over ? "idle" : state, state === "failed" ? "Not connected." : message);
  if (state === "connected") askWay();
}

/** The call is over: what it held is let go, what it told stays to be read. */
function close() {
  timeline = call.timeline;
  call = null;
  way = null;
  microphone.close();
  sound.close();
  conversation.open(false);
  drawWay(way);
}

function fail(error, message) {
  const { text, steps } = explain.call(error);
  stage.notice(text || message, steps);
  stage.askKey(error?.status === 401 || error?.status === 403);
}

function reached() {
  setup.draw(call.timeline);
  drawSteering(call);
  conversation.open(call.timeline.channel !== null);
}

function noted(detail) {
  journal.add(detail);
  const { direction, event } = detail;
  if (direction === "received") conversation.hear(event);
  if (direction !== "page") return;
  if (event.type === "page.resumed") conversation.seam(true);
  if (event.type === "page.anew") conversation.seam(false);
}

// ---- what the person wants ----

function talk() {
  start().catch(() => {}); // the page has said why
}

function hangUp() {
  if (call) call.stop();
  else if (stage.state === "asking") show("idle", "The call has ended.");
}

function mute() {
  microphone.muted = !microphone.muted;
  sounded();
}

function hold(held) {
  if (!microphone.holds || microphone.held === held) return;
  microphone.held = held;
  sounded();
}

function useKey(key) {
  server.useKey(key);
  talk();
}

function sounded() {
  microphone.apply();
  stage.draw(spoken());
}

async function choose() {
  try {
    await microphone.choose($("microphone").value);
    stage.notice();
    if (!call) return;
    await call.replace(microphone.track);
    sound.said(microphone.track);
  } catch (error) {
    const { text, steps } = explain.microphone(error);
    stage.notice(text, steps);
  }
}

// ---- what is shown ----

function show(state, message) {
  stage.show(state, message, spoken());
}

function spoken() {
  const { muted, holds, held } = microphone;
  return { muted, holds, held, speaking: call?.speaking ?? false };
}

async function drawFigures() {
  if (!call) return;
  const asked = call;
  const figures = await call.stats();
  if (call !== asked) return;
  history.push(figures);
  if (document.hidden) return;
  drawCounts(figures);
  plots.draw(history.points);
}

async function askWay() {
  const asked = call;
  if (!asked?.location || document.hidden) return;
  const answer = await server.path(asked.location);
  if (call !== asked) return;
  way = answer ?? { path: "unknown" };
  drawWay(way);
}

/** Say why there is no microphone, and what to do, before anybody presses anything. */
function block() {
  const { text, steps } = explain.insecure(location);
  show("blocked", "The microphone is locked on this address.");
  stage.notice(text, steps);
}

microphone.addEventListener("lost", () => {
  stage.notice("The microphone went away.", ["Plug it in again, or choose another one below."]);
});
$("microphone").addEventListener("change", choose);
$("hold").addEventListener("change", () => {
  microphone.holds = $("hold").checked;
  sounded();
});
addEventListener("pagehide", hangUp);
setInterval(drawFigures, FIGURES_MS);
setInterval(askWay, PATH_MS);
plots.draw([]);
if (!Microphone.available) block();

window.ferryline = {
  start,
  stop: hangUp,
  restart: () => call?.restart(),
  send: (event) => call?.send(event) ?? false,
  stats: async () => ({ ...(await call?.stats()), path: way?.path ?? "unknown" }),
  get pc() {
    return call?.pc ?? null;
  },
  get callId() {
    return call?.callId ?? null;
  },
  get turns() {
    return conversation.turns;
  },
  get timeline() {
    return call?.timeline ?? timeline; // of the last call
  },
};
