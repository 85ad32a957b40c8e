import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { OutsideEntry, OutsideServices } from '../../engine/contract/ports.ts';
import { parseName } from '../../wire/name.ts';
import type { RecordStream } from '../../zone/transfer-source.ts';
import { externalZone } from './external-zone.ts';
import { externalTransfers } from './transfer.ts';

const zone = externalZone('example.com.', 'dns', 5);

/** Transfers services that each have this many parts and endpoints. */
function transfer(
  services: number,
  parts: number,
  endpoints: number,
  isHeadless: boolean,
): { readonly stream: RecordStream; readonly made: { count: number } } {
  const made = { count: 0 };
  function* entries(service: number): Generator<readonly OutsideEntry[]> {
    for (let part = 0; part < parts; part++)
      yield Array.from({ length: endpoints }, (_, i) => {
        made.count++;
        const host = isHeadless ? `h${part}-${i}.` : '';
        const address = Uint8Array.of(10, part, i >> 8, i & 255);
        return { address, named: false, port: 80, below: parseName(`${host}s${service}.shop.`) };
      });
  }
  const outside: Partial<OutsideServices> = {
    serial: 1,
    synced: true,
    nameServers: () => [],
    *all() {
      for (let i = 0; i < services; i++)
        yield {
          headless: isHeadless,
          names: () => [{ below: parseName(`s${i}.shop.`), entries: () => entries(i) }],
        };
    },
  };
  const source = externalTransfers([zone], outside as OutsideServices, isHeadless);
  return { stream: source.find(zone.name, zone.name.length)!.records(), made };
}

/** Returns the longest time between two records or pauses, and the number of records. */
function steps({ stream, made }: ReturnType<typeof transfer>): {
  readonly most: number;
  readonly records: number;
} {
  let most = 0;
  let records = 0;
  for (let before = 0; ; before = made.count) {
    const step = stream.next();
    most = Math.max(most, made.count - before);
    if (step === 'end') return { most, records };
    if (step === 'record') records++;
  }
}

test("a transfer generates a service's records when it is reached, regardless of the number of services", () => {
  assert.deepEqual(steps(transfer(10_000, 1, 2, false)), { most: 2, records: 2 + 10_000 * 3 });
});

test('a transfer yields between the endpoints of a service', () => {
  assert.deepEqual(steps(transfer(1, 20, 1000, true)), {
    most: 1000,
    records: 2 + 2 * 20_000 + 2 * 20_000,
  });
});
