// What the page asks of the signaling server. One error class that says why, in the server's words.

const CALLS = "/v1/realtime/calls";

export class Refused extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/** Begin a call: `{answer, location}`. */
export async function create(offer) {
  const reply = await post(CALLS, offer);
  const location = reply.headers.get("Location");
  if (!location) throw new Refused(reply.status, "no_location", "The server named no call.");
  return { answer: await reply.text(), location };
}

/** An ICE restart of the call at `location`: the answer. */
export async function restart(location, offer) {
  return (await post(location, offer)).text();
}

/** End the call; resolves when the server knows, or after a moment. Outlives the page. */
export async function hangUp(location) {
  const signal = AbortSignal.timeout(1000);
  await fetch(location, { method: "DELETE", keepalive: true, signal }).catch(() => {});
}

/** Why the call at `location` has ended, as the server names it; null if nobody knows. */
export async function ending(location) {
  try {
    const reply = await fetch(location, { signal: AbortSignal.timeout(1500) });
    return reply.ok ? (await reply.json()).reason : null;
  } catch {
    return null;
  }
}

/** The way packets take, or null while nobody can say. */
export async function path(location) {
  try {
    const reply = await fetch(`${location}/path`, { signal: AbortSignal.timeout(1500) });
    return reply.ok ? await reply.json() : null;
  } catch {
    return null;
  }
}

async function post(url, offer) {
  const reply = await fetch(url, {
    method: "POST",
    headers: { "Content-Type": "application/sdp" },
    body: offer,
    signal: AbortSignal.timeout(8000),
  });
  if (reply.ok) return reply;
  const { error } = await reply.json().catch(() => ({}));
  throw new Refused(reply.status, error?.code ?? "", error?.message ?? `HTTP ${reply.status}`);
}
