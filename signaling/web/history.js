// The quality of a call over the last two minutes, one point a second. Pure: figures of `stats.js`
// in, points out. Counts become shares of what came since the point before.

export const SECONDS = 120;
const FLOOR_DB = -60;

export class History {
  #points = [];
  #last = null;

  get points() {
    return this.#points;
  }

  /** Take the figures of this second. A value is null where the browser tells nothing. */
  push(figures) {
    const last = this.#last ?? figures;
    this.#last = figures;
    this.#points.push({
      rtt: figures.rtt_ms,
      jitter: figures.jitter_ms,
      loss_down: share(
        grown(last, figures, (f) => f.lost.down),
        grown(last, figures, (f) => f.packets.down),
      ),
      loss_up: share(
        grown(last, figures, (f) => f.lost.up),
        grown(last, figures, (f) => f.packets.up),
      ),
      concealed: percent(
        grown(last, figures, (f) => f.concealed_samples),
        grown(last, figures, (f) => f.samples),
      ),
      heard: decibels(last.heard, figures.heard),
      said: decibels(last.said, figures.said),
    });
    if (this.#points.length > SECONDS) this.#points.shift();
  }

  clear() {
    this.#points = [];
    this.#last = null;
  }
}

/** `{now, least, most}` of one series, over what is known of it; null while nothing is. */
export function summary(points, name) {
  const known = points.map((point) => point[name]).filter((value) => value !== null);
  if (!known.length) return null;
  return { now: points.at(-1)[name], least: Math.min(...known), most: Math.max(...known) };
}

/** Growth of a count; a call begun anew counts from 0, which is no shrinking. */
function grown(last, now, of) {
  return Math.max(0, of(now) - of(last));
}

/** Packets lost, in % of those that should have come. */
function share(lost, came) {
  return lost + came ? (100 * lost) / (lost + came) : null;
}

function percent(part, whole) {
  return whole ? Math.min(100, (100 * Math.max(0, part)) / whole) : null;
}

/** Mean level between two moments, in dB below full scale; -60 is silence. */
function decibels(last, now) {
  const seconds = (now?.seconds ?? 0) - (last?.seconds ?? 0);
  if (!last || !now || seconds <= 0) return null;
  const energy = Math.max(0, now.energy - last.energy);
  return Math.max(FLOOR_DB, 10 * Math.log10(energy / seconds + 1e-12));
}
