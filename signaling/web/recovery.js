// How a call whose path is lost is saved: ICE restarts first; resumed on another server where the
// one that had it is gone; begun anew where nothing of it is left. Knows no connection.

const PATIENCE_MS = 60000; // of a recovery as a whole
const RESTARTS = 3; // in vain, before the call is taken elsewhere
const FIRST_PAUSE_MS = 250; // after a failure; doubles
const LONGEST_PAUSE_MS = 4000;
const AFTER = { restart: "resume", resume: "anew", anew: "anew" }; // where the call is not there

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/**
 * True once audio flows again; false when the call is over, or patience is.
 *
 * `steps` has restart(attempt), resume() and anew(), which throw where they fail; flows(): does audio
 * come; over(): is it all over here; placed(): is there a call at the server; lost(step, error):
 * does this failure mean that the call is not there to be taken up. Then the next step is taken at
 * once; what fails otherwise is tried again after a pause.
 */
export async function recover(steps) {
  const begun = performance.now();
  let [step, vain, pause] = ["restart", 0, FIRST_PAUSE_MS];
  while (performance.now() - begun < PATIENCE_MS) {
    if (!steps.placed()) step = "anew";
    try {
      await steps[step](vain + 1);
      if (!steps.over() && (await steps.flows())) return true;
      vain = step === "restart" ? vain + 1 : 0;
      step = vain < RESTARTS ? "restart" : "resume"; // of the call that is there now
    } catch (error) {
      if (steps.over()) return false;
      if (await steps.lost(step, error)) {
        [step, vain] = [AFTER[step], 0];
      } else if (!steps.over()) {
        await sleep(pause);
        pause = Math.min(2 * pause, LONGEST_PAUSE_MS);
      }
    }
    if (steps.over()) return false;
  }
  return false;
}
