// @openai/agents-realtime, unchanged: an agent with a tool, its session, its WebRTC transport.

import { OpenAIRealtimeWebRTC, RealtimeAgent, RealtimeSession, tool } from '@openai/agents-realtime';
import { z } from 'zod';

const own = { tool_calls: [], tool_ends: [], errors: [], history: [], types: {} };
let session = null;

window.client = {
  async connect({ url, key }) {
    const weather = tool({
      name: 'weather',
      description: 'The weather in a city',
      parameters: z.object({ city: z.string() }),
      execute: async ({ city }) => {
        own.tool_calls.push(city);
        return `sunny in ${city}`;
      },
    });
    const agent = new RealtimeAgent({ name: 'Guide', instructions: 'Be brief.', tools: [weather] });
    const transport = new OpenAIRealtimeWebRTC({ baseUrl: `${url}/v1/realtime/calls` });
    session = new RealtimeSession(agent, { transport, model: 'test-model' });
    session.on('error', ({ error }) => own.errors.push(JSON.stringify(error?.error ?? String(error))));
    session.on('agent_tool_end', (_, __, { name }, result) => own.tool_ends.push([name, result]));
    session.on('history_updated', (history) => {
      own.history = history.map((item) => [item.type, item.role ?? item.name, item.status]);
    });
    session.transport.on('*', ({ type }) => (own.types[type] = (own.types[type] ?? 0) + 1));
    const begun = performance.now();
    await session.connect({ apiKey: key });
    own.connect_ms = performance.now() - begun; // 5 s: it had no `session.updated`
    own.call_id = transport.callId;
  },
  async interrupt() {
    session.interrupt();
  },
  own: () => own,
  async hangUp() {
    session.close();
  },
};
