// Sends commands to the fault hop's control socket and prints its last answer, one JSON line.
// Usage: node tell_hop.mjs SOCKET COMMAND…, each command a JSON object; see tests/lab/hop.py.

import net from 'node:net';
import readline from 'node:readline';

const [path, ...commands] = process.argv.slice(2);
const socket = net.createConnection(path);
socket.setTimeout(5_000, () => socket.destroy(new Error('the hop does not answer')));
const answers = readline.createInterface({ input: socket })[Symbol.asyncIterator]();
let answer;
for (const command of commands) {
  socket.write(`${command}\n`);
  answer = (await answers.next()).value;
  if (!JSON.parse(answer ?? '{}').ok) throw new Error(`${command}: ${answer}`);
}
console.log(answer);
socket.destroy();
