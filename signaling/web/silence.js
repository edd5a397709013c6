// Watches the packets that come in: the other side always sends, so a second without any is a
// broken path, long before ICE says so.

const SILENT_MS = 1000;
const WATCH_MS = 250;

/** Look at `received()` (packets so far) until the returned function is called. `first` is told
 * once, `silent` again and again while nothing comes. */
export function watchForSilence(received, { first, silent }) {
  let [last, quiet, before, heard] = [0, 0, performance.now(), false];
  const timer = setInterval(async () => {
    const packets = await received().catch(() => last);
    const now = performance.now();
    if (packets > 0 && !heard) {
      heard = true;
      first();
    }
    // a throttled timer says nothing about the network: a turn counts for its own length only
    quiet = packets === last ? quiet + Math.min(now - before, 2 * WATCH_MS) : 0;
    [last, before] = [packets, now];
    if (heard && quiet >= SILENT_MS) silent();
  }, WATCH_MS);
  return () => clearInterval(timer);
}
