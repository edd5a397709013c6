// The way packets take, in a drawing and in words; and the plain counts beside it.

import { $, write } from "./dom.js";

const WAYS = {
  kernel: ["in the kernel", "An XDP program forwards every packet; user space sees none of them."],
  user: ["in user space", "A process of the relay forwards every packet."],
  unknown: ["unknown", "No relay tells: it has no admin address here, or it did not answer."],
};
const REASONS = {
  socket_datapath: "it runs the socket datapath",
  no_nexthop_in: "the way to the transceiver is not resolved yet",
  no_nexthop_out: "the way to you is not resolved yet",
};
const NOTHING = ["–", "Shown once you are in a call."];

/** `way` as the server tells it; null outside a call. */
export function drawWay(way) {
  const [name, text] = way ? (WAYS[way.path] ?? WAYS.unknown) : NOTHING;
  $("way").dataset.path = way?.path ?? "none";
  write($("way-client"), breakable(way?.client ?? "browser"));
  write($("way-relay"), name);
  write($("way-endpoint"), breakable(way?.endpoint ?? "–"));
  write($("way-text"), way?.ingress ? `${text} ${because(way)}` : text);
}

/** Where the server sent this call: `ingress` and `steering` of its answer, null where untold. */
export function drawSteering({ ingress, steering }) {
  write($("ingress"), ingress ?? "not told");
  write($("steering"), steering ?? "not told");
}

export function drawCounts({ packets, lost, restarts, resumes }) {
  write($("up"), String(packets.up));
  write($("down"), String(packets.down));
  write($("lost"), String(Math.max(0, lost.up) + Math.max(0, lost.down)));
  write($("restarts"), `${restarts} / ${resumes}`);
}

function because({ ingress, vip, reason }) {
  return `Relay ${ingress}, ${vip}${reason ? `; ${REASONS[reason] ?? reason}` : ""}.`;
}

/** An address that a narrow column may break before its port. */
function breakable(address) {
  return address.replace(/:(\d+)$/, "\u200b:$1");
}
