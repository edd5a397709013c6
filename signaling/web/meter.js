// The loudness of an audio track as 0 to 1, for bars that move. No sound is played or kept.

const FLOOR_DB = -55;

export class Meter {
  #context = null;
  #sources = new Map();

  /** Follow `track` under `name`. Without an audio device there is simply no level. */
  follow(name, track) {
    this.forget(name);
    try {
      this.#context ??= new AudioContext();
      this.#context.resume().catch(() => {});
      const source = this.#context.createMediaStreamSource(new MediaStream([track]));
      const analyser = this.#context.createAnalyser();
      analyser.fftSize = 1024;
      source.connect(analyser);
      this.#sources.set(name, { source, analyser, samples: new Float32Array(analyser.fftSize) });
    } catch (error) {
      console.info("no level meter:", error.message);
    }
  }

  /** The level now; 0 for what is not followed. */
  level(name) {
    const followed = this.#sources.get(name);
    if (!followed) return 0;
    followed.analyser.getFloatTimeDomainData(followed.samples);
    let sum = 0;
    for (const sample of followed.samples) sum += sample * sample;
    const db = 10 * Math.log10(sum / followed.samples.length + 1e-12);
    return Math.min(1, Math.max(0, 1 - db / FLOOR_DB));
  }

  forget(name) {
    this.#sources.get(name)?.source.disconnect();
    this.#sources.delete(name);
  }

  close() {
    for (const name of [...this.#sources.keys()]) this.forget(name);
    this.#context?.close().catch(() => {});
    this.#context = null;
  }
}
