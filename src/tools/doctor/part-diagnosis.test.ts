import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { examine } from '../../../test/kit/story.ts';
import { asked, ends, inOrder } from '../../../test/kit/story-parts.ts';
import { TYPE } from '../../server/wire/iana.ts';
import { Observations } from './observe/observations.ts';
import { SearchDomains } from '../capture/pair/search-walk.ts';
import { madeExchange } from '../capture/read/records/made-exchange.ts';
import { diagnoseWithParts, type Part } from './part-diagnosis.ts';

/**
 * Answers for many clients, and then lost queries of a few others. @returns the parts that are
 * examined
 */
async function partsFor(answered: number): Promise<readonly Part[]> {
  const observed = new Observations(new SearchDomains());
  let atMs = 1.7e12;
  const ask = (address: string, isLost: boolean): void => {
    atMs += 10;
    const exchange = madeExchange({
      ...{ protocol: 'udp', id: 1, name: `x${atMs}.example.`, type: TYPE.A, class: 1 },
      ...{ client: { address, port: 4000 }, server: { address: '10.96.0.10', port: 53 } },
      ...{ udpSize: 512, sentMs: atMs, repliedMs: atMs + 1, rcode: 0, flags: 0, line: 1 },
    });
    if (isLost) Object.assign(exchange, { ending: 'lost', repliedMs: null, reply: null });
    observed.exchange(exchange);
  };
  for (let at = 0; at < answered; at++) ask(`10.0.${at >> 8}.${at & 255}`, false);
  for (let turn = 0; turn < 5; turn++)
    for (let at = 0; at < 40; at++) ask(`10.1.0.${at}`, at % 4 === turn % 4);
  let parts: readonly Part[] = [];
  await diagnoseWithParts(observed, (all) => {
    parts = all;
    return Promise.resolve(all.map(() => new Observations(observed.domains)));
  });
  return parts;
}

const few = ({ clients }: Part): boolean => clients !== null;

describe('a few clients that lose the queries are examined separately', () => {
  it('where it is known that they ask little', async () => {
    assert.ok((await partsFor(5000)).some(few));
  });

  it('but not if more clients query than are examined one by one', async () => {
    const parts = await partsFor(10_000);
    assert.ok(parts.length > 0);
    assert.ok(!parts.some(few));
  });
});

it('late replies of a moment are a warning', async () => {
  const searches = Array.from({ length: 400 }, (_, i) => {
    const isLate = i * 200 >= 10_000 && i * 200 < 11_500;
    return ['shop.svc.cluster.local.', 'svc.cluster.local.', 'cluster.local.', ''].flatMap(
      (domain, step) => {
        const [tookMs, rcode] = step < 3 ? [isLate ? 100 : 1, 3] : [isLate ? 1500 : 5, 0];
        const way = ends('10.244.1.7', 20_000 + i, '10.96.0.10');
        const name = `n${i}.example.com.${domain}`;
        return asked(i * 200 + step * 110, way, name, 4 * i + step, { tookMs, rcode });
      },
    );
  });
  const { findings } = await examine(inOrder(searches));
  const slow = findings.find(({ code }) => code === 'ND4003');
  assert.match(slow?.seen[0] ?? '', /examined separately/);
  assert.equal(slow?.severity, 'warning');
});
