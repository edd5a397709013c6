// How a call whose path is lost is saved: ICE restarts first, then the same call begun anew.
// Knows no connection. `steps` has placed() and over() (is there a call at the server; is it all
// over here), restart(attempt), anew(), flows() (does audio come again) and lost(error).

const PATIENCE_MS = 60000; // of a recovery as a whole
const RESTARTS = 3; // without success, before the call is begun anew
const FIRST_PAUSE_MS = 250; // after a failure; doubles
const LONGEST_PAUSE_MS = 4000;

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** True once audio flows again; false when the call is over, or patience is. `lost` says whether an
 * error means that the call at the server is gone: then it is begun anew at once. */
export async function recover(steps) {
  const begun = performance.now();
  let pause = FIRST_PAUSE_MS;
  for (let attempt = 1; performance.now() - begun < PATIENCE_MS; attempt++) {
    try {
      if (steps.placed() && attempt <= RESTARTS) await steps.restart(attempt);
      else await steps.anew();
      if (!steps.over() && (await steps.flows())) return true;
    } catch (error) {
      if (steps.over()) return false;
      if (await steps.lost(error)) continue;
      if (steps.over()) return false;
      await sleep(pause);
      pause = Math.min(2 * pause, LONGEST_PAUSE_MS);
    }
    if (steps.over()) return false;
  }
  return false;
}
