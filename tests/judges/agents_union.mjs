// Reads server events, one JSON object a line of stdin, as @openai/agents-realtime does, and prints
// one JSON object for each: {"known": whether the SDK has a schema for the type, "faults": [...]}.
//
// The SDK takes an event that does not fit its schema as a generic one and goes on without it, so
// that counts as a fault. It also throws on items that it cannot read: its own handler runs, too.

import { createInterface } from 'node:readline';

// The package exports neither; its files are where the lock file puts them.
const dist = new URL('./node_modules/@openai/agents-realtime/dist/', import.meta.url);
const { realtimeServerEventSchema } = await import(new URL('openaiRealtimeEvents.mjs', dist));
const { OpenAIRealtimeBase } = await import(new URL('openaiRealtimeBase.mjs', dist));

class Reader extends OpenAIRealtimeBase {
  sendEvent() {}
}

const known = new Set(
  realtimeServerEventSchema.options.map((schema) => schema.shape.type.value),
);
const reader = new Reader();
reader.on('error', () => {}); // of `error` events

function faults(line) {
  const event = JSON.parse(line);
  if (!known.has(event.type)) return [];
  const parsed = realtimeServerEventSchema.safeParse(event);
  if (!parsed.success) {
    return parsed.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`);
  }
  try {
    reader._onMessage({ data: line });
  } catch (error) {
    return [`the SDK throws: ${error.message}`];
  }
  return [];
}

for await (const line of createInterface({ input: process.stdin })) {
  const answer = { known: known.has(JSON.parse(line).type), faults: faults(line) };
  process.stdout.write(JSON.stringify(answer) + '\n');
}
