// What a step of the recovery that failed means for the call: it goes on (trying), its server has
// lost it, or it is over. Asks the server where the error alone does not tell.

import * as server from "./server.js";

const FORBIDDEN = [401, 403]; // trying again does not help
const LATER = [408, 429, 503]; // nothing is said about the call
const ENDED = 410; // over there; for these reasons it is taken up again
const LOST = ["consent_lost", "internal_error", "shutdown"];
const ENDS = {
  hangup: "The other side has hung up.",
  backend_ended: "The other side has hung up.",
  expired: "The time of this call was up.",
  resumed: "The call goes on elsewhere.",
};

/**
 * `{over: {state, message}}`, or `{lost}`: whether this step (restart, resume or anew) is of no more
 * use for the call at `location`. No answer to a restart is one where the signaling server itself
 * can be reached: the server that has the call hangs.
 */
export async function verdict(step, error, location) {
  const { status } = error;
  if (FORBIDDEN.includes(status)) return { over: { state: "failed", message: error.message } };
  if (step === "anew" || LATER.includes(status)) return { lost: false };
  if (status === 0) return { lost: step === "restart" && (await server.reachable()) };
  if (step === "resume") return { lost: status !== undefined }; // else no media came
  if (status !== ENDED) return { lost: true };
  const reason = await server.ending(location);
  // Nobody knows: the server that ended it is gone by now, as one that is shut down.
  if (reason === null || LOST.includes(reason)) return { lost: true };
  const message = ENDS[reason] ?? `The call has ended: ${reason}.`;
  return { over: { state: "ended", message } };
}
