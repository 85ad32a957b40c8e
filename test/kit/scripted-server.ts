/**
 * A DNS server on real sockets that answers from an answers file: `node scripted-server.ts SCRIPT.json LOG IP…`. The
 * tests in test/real start it inside a network namespace. It logs each query as one line of JSON.
 */
import { appendFileSync, readFileSync } from 'node:fs';
import { serveScript } from '../../src/tools/lab/scripted-server.ts';
import { parseAnswers } from '../../src/tools/resolver/answers-file.ts';

const [scriptFile = '', log = '', ...listen] = process.argv.slice(2);
const script = parseAnswers(JSON.parse(readFileSync(scriptFile, 'utf8')), scriptFile);

await serveScript(script, listen, ({ atMs, protocol, server, clientPort, query, answer }) => {
  const { id, name, type, edns, ad } = query;
  const opt = edns === null ? '' : `edns ${edns.size}${edns.cookie ? ' opt10' : ''}`;
  const row = [atMs, protocol, server, clientPort, id, name, type, opt, ad ? 'ad' : '', answer];
  appendFileSync(log, `${JSON.stringify(row)}\n`);
});
process.stdout.write('ready\n');
