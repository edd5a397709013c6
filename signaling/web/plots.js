// Small plots of the last two minutes: SVG paths, drawn once a second, each with its words.

import { $, make, write } from "./dom.js";
import { SECONDS, summary } from "./history.js";

const SVG = "http://www.w3.org/2000/svg";
const [WIDTH, HEIGHT] = [240, 56];

// `series`: to you, from you. `top`: least height of the axis, so that noise looks like noise.
const PLOTS = [
  { title: "Round trip", unit: "ms", series: ["rtt"], bottom: 0, top: 20 },
  { title: "Jitter", unit: "ms", series: ["jitter"], bottom: 0, top: 10 },
  { title: "Lost", unit: "%", series: ["loss_down", "loss_up"], bottom: 0, top: 2 },
  { title: "Concealed", unit: "%", series: ["concealed"], bottom: 0, top: 2 },
  { title: "Level", unit: "dB", series: ["heard", "said"], bottom: -60, top: 0 },
];
const NAMES = ["to you", "from you"];

export class Plots {
  #plots = PLOTS.map((plot) => new Plot(plot));

  draw(points) {
    for (const plot of this.#plots) plot.draw(points);
  }
}

class Plot {
  #kind;
  #now = make("b", {}, "–");
  #top = make("span", { class: "top" });
  #svg = document.createElementNS(SVG, "svg");
  #lines;

  constructor(kind) {
    this.#kind = kind;
    this.#svg.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
    this.#svg.setAttribute("preserveAspectRatio", "none");
    this.#svg.setAttribute("role", "img");
    this.#svg.setAttribute("aria-label", `${kind.title}: nothing yet`);
    this.#lines = kind.series.map((_, at) => {
      const line = document.createElementNS(SVG, "path");
      line.setAttribute("class", at ? "line-b" : "line-a");
      this.#svg.append(line);
      return line;
    });
    const head = make("figcaption", {}, make("span", {}, kind.title), this.#now);
    const frame = make("div", { class: "frame" });
    frame.append(this.#svg, this.#top);
    $("plots").append(make("figure", {}, head, frame));
  }

  draw(points) {
    const { title, unit, series, bottom } = this.#kind;
    const told = series.map((name) => summary(points, name));
    const known = told.filter(Boolean);
    const top = Math.max(this.#kind.top, ...known.map(({ most }) => nice(most)));
    series.forEach((name, at) => {
      const values = points.map((point) => point[name]);
      this.#lines[at].setAttribute("d", path(values, bottom, top));
    });
    write(this.#now, known.length ? `${shown(told[0]?.now ?? known[0].now)} ${unit}` : "–");
    write(this.#top, `${top} ${unit}`);
    this.#svg.setAttribute("aria-label", `${title}: ${sentences(told, unit) || "nothing yet"}`);
  }
}

function sentences(told, unit) {
  return told
    .map((one, at) => {
      const who = told.length > 1 ? `${NAMES[at]} ` : "";
      return (
        one && `${who}now ${shown(one.now)} ${unit}, from ${shown(one.least)} to ${shown(one.most)}`
      );
    })
    .filter(Boolean)
    .join("; ");
}

function shown(value) {
  if (value === null) return "–";
  return value.toFixed(Math.abs(value) < 10 ? 1 : 0).replace("-", "−");
}

/** The next 1, 2 or 5 with zeros. */
function nice(value) {
  if (value <= 0) return 0;
  const ten = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].find((step) => step * ten >= value) * ten;
}

/** The newest value at the right; where nothing is known there is a gap. */
function path(values, bottom, top) {
  let text = "";
  let pen = "M";
  values.forEach((value, at) => {
    if (value === null) return (pen = "M");
    const x = WIDTH - ((values.length - 1 - at) * WIDTH) / (SECONDS - 1);
    const y = HEIGHT - 2 - ((value - bottom) / (top - bottom || 1)) * (HEIGHT - 4);
    text += `${pen}${x.toFixed(1)} ${y.toFixed(1)}`;
    pen = "L";
  });
  return text;
}
