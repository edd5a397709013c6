// What the page asks of the signaling server. One error class that says why, in the server's words.

import { secrets } from "./storage.js";

const CALLS = "/v1/realtime/calls";
const KEY = "key";
const ANSWER_MS = 8000;
const RESTART_MS = 1200; // signaling gives the server of a call a second to answer

let key = secrets.get(KEY); // kept here too: a browser may keep nothing for us

export class Refused extends Error {
  /** `status` is 0 when no answer came. */
  constructor(status, code, message, retryAfter = null) {
    super(message);
    this.status = status;
    this.code = code;
    this.retryAfter = retryAfter; // seconds, where the server names them
  }
}

/** The key that goes with what begins or ends a call; "" for none. It is never part of a URL. */
export function useKey(text) {
  key = text.trim() || null;
  secrets.set(KEY, key);
}

/** Begin a call: `{answer, location, ingress, steering}`, the last two null where nobody tells. */
export function create(offer) {
  return begin(CALLS, offer);
}

/** Begin a call that takes up the one at `location`, as far as that was kept: as `create`. */
export function resume(location, offer) {
  return begin(`${CALLS}?resume=${location.split("/").pop()}`, offer);
}

async function begin(url, offer) {
  const reply = await post(url, offer, ANSWER_MS, authorization());
  const location = reply.headers.get("Location");
  if (!location) throw new Refused(reply.status, "no_location", "The server named no call.");
  const ingress = reply.headers.get("X-Ferryline-Ingress");
  const steering = reply.headers.get("X-Ferryline-Steering");
  return { answer: await reply.text(), location, ingress, steering };
}

/** An ICE restart of the call at `location`: the answer. */
export async function restart(location, offer) {
  return (await post(location, offer, RESTART_MS)).text();
}

/** Whether the signaling server itself answers. */
export async function reachable() {
  return (await ask("/healthz", RESTART_MS)) !== null;
}

/** End the call; resolves when the server knows, or after a moment. Outlives the page. */
export async function hangUp(location) {
  const signal = AbortSignal.timeout(1000);
  const headers = authorization();
  await fetch(location, { method: "DELETE", headers, keepalive: true, signal }).catch(() => {});
}

/** Why the call at `location` has ended, as the server names it; null if nobody knows. */
export async function ending(location) {
  return (await ask(location))?.reason ?? null;
}

/** The way packets take, or null while nobody can say. */
export function path(location) {
  return ask(`${location}/path`);
}

function authorization() {
  return key ? { Authorization: `Bearer ${key}` } : {};
}

async function ask(url, within = 1500) {
  try {
    const reply = await fetch(url, { signal: AbortSignal.timeout(within) });
    return reply.ok ? await reply.json() : null;
  } catch {
    return null;
  }
}

async function post(url, offer, within, headers = {}) {
  let reply;
  try {
    reply = await fetch(url, {
      method: "POST",
      headers: { ...headers, "Content-Type": "application/sdp" },
      body: offer,
      signal: AbortSignal.timeout(within),
    });
  } catch (error) {
    const why = error.name === "TimeoutError" ? `did not answer in ${within / 1000} s` : "cannot be reached";
    throw new Refused(0, "unreachable", `The signaling server ${why}.`);
  }
  if (reply.ok) return reply;
  const { error } = await reply.json().catch(() => ({}));
  const message = error?.message ?? `HTTP ${reply.status}`;
  const retry = Number.parseInt(reply.headers.get("Retry-After"), 10);
  throw new Refused(reply.status, error?.code ?? "", message, retry || null);
}
