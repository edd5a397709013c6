// What went wrong, and what to do about it, in words for whoever has the page open.
// Pure: an error in, `{text, steps}` out; backticks mark what is to be typed.

const MICROPHONE = {
  NotAllowedError: [
    "The microphone was refused.",
    "Allow it in the address bar (the icon beside the address), then press Talk.",
    "Nothing to allow there? The system's own privacy settings may withhold it from this browser.",
  ],
  NotFoundError: ["No microphone was found.", "Plug one in or switch it on, then press Talk."],
  NotReadableError: [
    "The microphone is in use by another program.",
    "Close that program or choose another microphone below, then press Talk.",
  ],
};

const SERVER = {
  0: ["Look whether the server is running and this device is online, then press Talk."],
  401: ["Enter a key below. Whoever runs this server can give you one."],
  403: ["This key may not do that: use another one."],
  429: ["Too many calls were begun from here."],
  502: ["A transceiver does not answer. Press Talk to be sent to another one."],
  503: ["Every place is taken, or nothing is ready to take a call."],
};

/** Why there is no microphone. */
export function microphone(error) {
  const [text, ...steps] = MICROPHONE[error.name] ?? [
    `The microphone cannot be used: ${error.message}`,
    "Choose another one below, or the system's choice, then press Talk.",
  ];
  return { text, steps };
}

/** Why there is no call, or no longer one. */
export function call(error) {
  const steps = [...(SERVER[error?.status] ?? [])];
  if (error?.retryAfter) steps.push(`Press Talk again in ${error.retryAfter} s.`);
  else if ([429, 503].includes(error?.status)) steps.push("Press Talk again in a moment.");
  if (/over UDP/.test(error?.message)) {
    steps.push("Try another network, for instance a phone's, or have UDP to that port allowed.");
  }
  if (!steps.length && !/Talk/.test(error?.message)) steps.push("Press Talk to try again.");
  const keyless = error?.code === "missing_api_key";
  return { text: keyless ? "This server asks for a key." : (error?.message ?? ""), steps };
}

/** Browsers hide the microphone from pages that came by plain http from elsewhere. */
export function insecure({ protocol, hostname, host, port }) {
  const here = `http://localhost${port ? `:${port}` : ""}`;
  return {
    text:
      "Browsers give the microphone only to `http://localhost` and to https pages; this page came " +
      `from \`${protocol}//${host}\`. Either`,
    steps: [
      `open \`${here}\` on the machine that serves it, or`,
      `have it serve https: \`signaling serve --tls-self-signed ${hostname}\``,
    ],
  };
}
