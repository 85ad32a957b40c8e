/** The plugin's zones as records, for transfer. */
import type { OutsideEntry, OutsideServices } from '../../server/contract/ports.ts';
import { NAME_MAX, joinNames, nameLength, type WireName } from '../../wire/name.ts';
import { SECTION, type WriteRecord } from '../../wire/writer.ts';
import type { Transferable, TransferSource } from '../../zone/transfer-source.ts';
import { TYPE } from '../../wire/iana.ts';
import {
  addressesOf,
  aliasOf,
  distinct,
  targetsOf,
  writeAddress,
  writeNamed,
  writeSoa,
  writeTarget,
  type ExternalZone,
} from './external-zone.ts';

/** The forward zones, once everything has been listed. No NOTIFY is sent, as with `kubernetes`. */
export function externalTransfers(
  zones: readonly ExternalZone[],
  services: OutsideServices,
  headless: boolean,
): TransferSource {
  return {
    find(name, length) {
      const text = Buffer.from(name.buffer, name.byteOffset, length).toString('latin1');
      const zone = zones.find((one) => Buffer.from(one.name).toString('latin1') === text);
      const given = zone !== undefined && !zone.text.endsWith('.arpa.') && services.synced;
      return given ? transferable(zone, services, headless) : null;
    },
    watch: () => () => undefined,
  };
}

/** An owner and another name, with the few bytes that stand around them. */
const RECORD_MAX = 2 * NAME_MAX + 64;

function transferable(
  zone: ExternalZone,
  services: OutsideServices,
  headless: boolean,
): Transferable {
  const { serial } = services;
  return {
    zone: zone.text,
    serial,
    history: [],
    records() {
      const records = recordsOf(zone, serial, services, headless);
      let write: WriteRecord = () => undefined;
      return {
        next() {
          const { done, value } = records.next();
          if (done === true) return 'end';
          write = value;
          return 'record';
        },
        size: RECORD_MAX,
        write: (to) => write(to),
      };
    },
  };
}

/**
 * What there is when the first record after the SOA record is asked for: the transfer stays at that
 * moment.
 */
function* recordsOf(
  zone: ExternalZone,
  serial: number,
  services: OutsideServices,
  headless: boolean,
): Generator<WriteRecord, void, undefined> {
  const { ttl, name, server } = zone;
  yield (to) => writeSoa(to, SECTION.answer, zone, serial);
  const addresses = services.nameServers(headless);
  const found = [...services.all(headless)].map((service) => ({
    ...service,
    entries: services.find(service.below, nameLength(service.below) - 1, headless) ?? [],
    byPort: service.ports.map(
      (port) => [port, services.find(port, nameLength(port) - 1, headless) ?? []] as const,
    ),
  }));
  yield (to) => writeNamed(to, name, TYPE.NS, server, ttl);
  for (const address of addresses)
    yield (to) => writeAddress(to, SECTION.answer, server, address, ttl);
  for (const { below, entries, byPort, headless: byEndpoint } of found) {
    yield* namedRecords(joinNames(below, name), entries, zone);
    for (const [port, ofPort] of byPort) yield* serviceRecords(joinNames(port, name), ofPort, zone);
    if (!byEndpoint) continue;
    const hosts = Map.groupBy(entries, (entry) => entry.below.join());
    for (const own of hosts.values())
      yield* namedRecords(joinNames(own[0]!.below, name), own, zone);
  }
}

function* namedRecords(
  owner: WireName | null,
  entries: readonly OutsideEntry[],
  zone: ExternalZone,
): Generator<WriteRecord, void, undefined> {
  if (owner === null || entries.length === 0) return;
  const alias = aliasOf(entries);
  if (alias !== null) {
    yield (to) => writeNamed(to, owner, TYPE.CNAME, alias, zone.ttl);
    return;
  }
  for (const address of addressesOf(entries))
    yield (to) => writeAddress(to, SECTION.answer, owner, address, zone.ttl);
  yield* serviceRecords(owner, entries, zone);
}

function* serviceRecords(
  owner: WireName | null,
  entries: readonly OutsideEntry[],
  zone: ExternalZone,
): Generator<WriteRecord, void, undefined> {
  if (owner === null) return;
  const targets = targetsOf(entries, zone);
  for (const one of distinct(targets, ({ target, port }) => `${port} ${target.join()}`))
    yield (to) => writeTarget(to, owner, one, zone.ttl);
}
