/** A real node cache's `console` directive, which `ndots top` reads on its node. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import {
  LOCAL,
  makeNodeWorld,
  noNodeWorld,
  SERVICE,
  until,
  WHO,
  type NodeWorld,
} from '../kit/node-world.ts';

const reason = noNodeWorld();
const program = join(import.meta.dirname, '../../bin/ndots');

describe('the console directive of a node cache', { skip: reason ?? false }, () => {
  let world: NodeWorld;
  let token: string;

  before(async () => {
    world = await makeNodeWorld();
    token = join(world.directory, 'console-token');
    writeFileSync(token, 'a-token-that-is-long-enough');
    const base = join(world.directory, 'Corefile.base');
    const console = `    console 127.0.0.1:9155 {\n        token_file ${token}\n        identity node7\n    }\n`;
    writeFileSync(base, readFileSync(base, 'utf8').replaceAll(/(:53 \{\n)/g, `$1${console}`));
    await world.cache();
    await until(() => world.who(SERVICE) === WHO.node);
  });
  after(() => world?.close());

  test('shows what pods ask at both addresses of the cache', async () => {
    const words = ['--server', '127.0.0.1:9155', '--server-token', token, '--once', '-o', 'json'];
    const rows = (view: string, seconds: number): readonly { readonly id: string }[] => {
      const all = [...words, '--view', view, '--for', `${seconds}s`];
      const out = world.node(program, 'top', ...all);
      return (JSON.parse(out) as { rows: readonly { id: string }[] }).rows;
    };
    const ended = [await world.ask(LOCAL, 100), await world.ask(SERVICE, 100)];
    let names: readonly string[] = [];
    for (let seconds = 2; !names.includes('who.test.'); seconds *= 2)
      names = rows('names', seconds).map(({ id }) => id);
    let clients: readonly string[] = [];
    for (let seconds = 2; clients.length === 0; seconds *= 2)
      clients = rows('clients', seconds).map(({ id }) => id);
    for (const end of ended) await end();
    assert.deepEqual(names, ['who.test.']);
    assert.equal(clients.length, 1);
  });
});
