import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { healthy, play } from '../../../test/kit/story.ts';
import { watched } from '../../../test/kit/watched.ts';
import { PrivateViews } from './view-privacy.ts';

describe('a trace as a client in the traffic', async () => {
  const lookups = (name: string): { atMs: number; name: string }[] =>
    Array.from({ length: 5 }, (_, at) => ({ atMs: at * 1500, name }));
  const packets = await play(
    [
      { address: '10.244.1.1', resolver: 'glibc', lookups: lookups('api.example.com') },
      { address: '10.244.1.2', resolver: 'musl', lookups: lookups('lost.example.com') },
    ],
    (passing) => (passing.name.startsWith('lost.') ? { lost: true } : healthy(passing)),
  );
  const model = watched(packets, {}, undefined, packets.at(-1)!.timeMs + 40_000);

  test('has the server, the search path and the replies that were seen', () => {
    const input = model.traceInput('10.244.1.1', 'api.example.com')!;
    assert.match(input.resolvConf, /^nameserver [\d.]+\nsearch \S*svc\.cluster\.local/);
    assert.match(input.resolvConf, /options ndots:5\n$/);
    assert.match(input.answers, /name: api\.example\.com\.\n {4}type: A\n {4}answer: 198\.18\.0\./);
    assert.match(input.answers, /api\.example\.com\.svc\.cluster\.local\.[^-]*answer: NXDOMAIN/);
    assert.ok(input.resolver.kinds.includes('glibc'), input.resolver.kinds.join());
  });

  test('a query that was lost is lost again', () => {
    const { answers } = model.traceInput('10.244.1.2', 'LOST.example.com.')!;
    assert.match(answers, /answer: DROP/);
  });

  test('says that a name was never looked up, and has no input for an unknown client', () => {
    const { answers, notes } = model.traceInput('10.244.1.1', 'new.example.org')!;
    assert.equal(answers, '');
    assert.ok(notes.some((note) => note.includes('This name was not queried')));
    assert.equal(model.traceInput('10.244.9.9', 'api.example.com'), null);
  });

  test('shows no client where clients are hidden', () => {
    const views = new PrivateViews(model, 'no-clients', 'key');
    assert.throws(() => views.traceInput('10.244.1.1', 'api.example.com'), /hidden/);
  });
});
