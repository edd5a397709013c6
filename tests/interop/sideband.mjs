// The npm package `openai` on a server: makes calls, listens beside them, hangs up. Obeys JSON lines
// of stdin and answers each with one; what the sideband hears comes as {"event"} between them.
// Arguments: URL of the services. The key is OPENAI_API_KEY, as the package has it.

import { createInterface } from 'node:readline';
import OpenAI from 'openai';
import { OpenAIRealtimeWS } from 'openai/realtime/ws';

const client = new OpenAI({ baseURL: `${process.argv[2]}/v1`, maxRetries: 0 });
const say = (value) => process.stdout.write(`${JSON.stringify(value)}\n`);
let sideband = null;

const ops = {
  async secret() {
    return client.realtime.clientSecrets.create({
      session: { type: 'realtime', model: 'test-model' },
    });
  },
  async create({ sdp, session }) {
    const response = await client.realtime.calls.create({ sdp, session });
    return { answer: await response.text(), location: response.headers.get('Location') };
  },
  async attach({ call_id }) {
    sideband = new OpenAIRealtimeWS({ callID: call_id }, client);
    sideband.on('event', (event) => say({ event }));
    sideband.on('error', () => {}); // an error event comes as an event, too
    await new Promise((resolve, reject) => {
      sideband.socket.once('open', resolve);
      sideband.socket.once('error', reject);
    });
    return {};
  },
  async send({ event }) {
    sideband.send(event);
    return {};
  },
  async hang_up({ call_id }) {
    await client.realtime.calls.hangup(call_id);
    return {};
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  try {
    say(await ops[request.op](request));
  } catch (error) {
    say({ error: String(error.message ?? error) });
  }
}
