import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { test } from 'node:test';
import { HttpAdmission } from './http-admission.ts';

/** Creates a request from this address on a new connection, as the admission control sees it. */
function exchange(address: string): { request: never; response: never; end: () => void } {
  const response = Object.assign(new EventEmitter(), {
    destroyed: false,
    setHeader: () => undefined,
    writeHead: () => response,
    end: () => response.emit('close'),
  });
  const request = { socket: { remoteAddress: address } };
  return { request: request as never, response: response as never, end: response.end };
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('clients take turns, and a probe goes first', async () => {
  const admission = new HttpAdmission(undefined, { each: 100, all: 1000 });
  const served: string[] = [];
  const ask = (address: string, probe = false): void => {
    const { request, response, end } = exchange(address);
    const answer = (): void => {
      served.push(address);
      end();
    };
    admission.take({ request, response, probe, answer });
  };
  for (let i = 0; i < 50; i++) ask('10.0.0.1');
  ask('10.0.0.2');
  ask('10.0.0.3');
  ask('10.0.0.1', true);
  assert.deepEqual(served, ['10.0.0.1'], 'the probe');
  while (served.length < 53) await turn();
  assert.ok(served.indexOf('10.0.0.2') <= 4, served.join());
  assert.ok(served.indexOf('10.0.0.3') <= 4, served.join());
});

test('at most four requests are answered per turn of the event loop', async () => {
  const admission = new HttpAdmission(undefined, { each: 8, all: 1000 });
  let served = 0;
  for (let client = 0; client < 100; client++) {
    const { request, response, end } = exchange(`10.0.0.${client}`);
    admission.take({
      request,
      response,
      probe: false,
      answer: () => {
        served++;
        end();
      },
    });
  }
  for (let before = 0; served < 100; before = served) {
    await turn();
    assert.ok(served - before <= 4, `${served - before}`);
  }
});

test('limits apply per address and in total; finished requests make room', () => {
  let refused = 0;
  const admission = new HttpAdmission(() => refused++, { each: 2, all: 5 });
  const ends: (() => void)[] = [];
  const ask = (address: string): void => {
    const { request, response, end } = exchange(address);
    ends.push(end);
    admission.take({ request, response, probe: false, answer: () => undefined });
  };
  for (const address of ['a', 'a', 'b', 'b', 'c']) ask(address);
  assert.equal(refused, 0);
  ask('a');
  ask('d');
  assert.equal(refused, 2);
  ends[0]!();
  ask('a');
  assert.equal(refused, 2);
  ask('::ffff:a');
  assert.equal(refused, 3, 'an IPv4 address has two spellings');
});
