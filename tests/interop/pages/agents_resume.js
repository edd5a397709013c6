// @openai/agents-realtime, unchanged: a session that carries on the call of another one.

import { OpenAIRealtimeWebRTC, RealtimeAgent, RealtimeSession } from '@openai/agents-realtime';

let session = null;
const errors = [];

window.client = {
  // `resume`: id of the call to be carried on. Resolves to the id of this one.
  async connect({ url, key, resume }) {
    const agent = new RealtimeAgent({ name: 'Guide', instructions: 'Be brief.' });
    const transport = new OpenAIRealtimeWebRTC();
    session = new RealtimeSession(agent, { transport, model: 'test-model' });
    session.on('error', ({ error }) => errors.push(JSON.stringify(error?.error ?? String(error))));
    const restored = [];
    transport.on('*', ({ type, item }) => {
      if (type === 'conversation.item.done') restored.push(item.id);
    });
    const calls = `${url}/v1/realtime/calls`;
    await session.connect({ apiKey: key, url: resume ? `${calls}?resume=${resume}` : calls });
    // The session has heard of the items, and empties its history once it is connected.
    for (const item_id of restored) {
      transport.sendEvent({ type: 'conversation.item.retrieve', item_id });
    }
    session.mute(true); // nothing is said, only written
    return transport.callId;
  },
  say: (text) => session.sendMessage(text),
  // What the session has of the conversation: [role, words].
  history: () =>
    session.history
      .filter(({ type, status }) => type === 'message' && status !== 'in_progress')
      .map(({ role, content }) => [
        role,
        content.map(({ text, transcript }) => text ?? transcript ?? '').join(''),
      ]),
  errors: () => errors,
  close: () => session.close(),
};
