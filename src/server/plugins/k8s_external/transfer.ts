/** Provides the plugin's zones as records for transfer. */
import type { OutsideEntry, OutsideName, OutsideServices } from '../../engine/contract/ports.ts';
import { NAME_MAX, joinNames, type WireName } from '../../wire/name.ts';
import { SECTION, type WriteRecord } from '../../wire/writer.ts';
import type { Transferable, TransferSource } from '../../zone/transfer-source.ts';
import { TYPE } from '../../wire/iana.ts';
import {
  addressesOf,
  aliasOf,
  distinct,
  keyOf,
  targetsOf,
  writeAddress,
  writeNamed,
  writeSoa,
  writeTarget,
  type ExternalZone,
} from './external-zone.ts';

/** Provides the forward zones once everything has been listed. As with `kubernetes`, no NOTIFY is sent. */
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

/** Maximum record size, which is an owner name, another name, and the fixed bytes. */
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
          if (value === null) return 'pause';
          write = value;
          return 'record';
        },
        size: RECORD_MAX,
        write: (to) => write(to),
      };
    },
  };
}

/** Null ends a turn. */
type TransferRecords = Generator<WriteRecord | null, void, undefined>;

/** Number of entries to examine before serving queries again, which takes less than a millisecond. */
const ENTRIES_A_TURN = 1000;

/**
 * Yields the entries that exist when the first record after the SOA is requested; later changes do not affect the
 * transfer. A service's records are generated when its turn comes.
 */
function* recordsOf(
  zone: ExternalZone,
  serial: number,
  services: OutsideServices,
  headless: boolean,
): TransferRecords {
  const { ttl, name, server } = zone;
  yield (to) => writeSoa(to, SECTION.answer, zone, serial);
  const addresses = services.nameServers(headless);
  const found = [...services.all(headless)];
  yield (to) => writeNamed(to, name, TYPE.NS, server, ttl);
  for (const address of addresses)
    yield (to) => writeAddress(to, SECTION.answer, server, address, ttl);
  for (const service of found) {
    const [itself, ...ports] = service.names();
    if (itself === undefined) continue;
    const entries = yield* gathered(itself);
    yield* namedRecords(joinNames(itself.below, name), entries, zone);
    for (const port of ports)
      yield* serviceRecords(joinNames(port.below, name), yield* gathered(port), zone);
    if (!service.headless) continue;
    const hosts = new Map<string, OutsideEntry[]>();
    for (const [i, entry] of entries.entries()) {
      const key = keyOf(entry.below);
      const same = hosts.get(key);
      if (same === undefined) hosts.set(key, [entry]);
      else same.push(entry);
      if (i % ENTRIES_A_TURN === ENTRIES_A_TURN - 1) yield null;
    }
    for (const own of hosts.values())
      yield* namedRecords(joinNames(own[0]!.below, name), own, zone);
  }
}

function* gathered({ entries }: OutsideName): Generator<null, readonly OutsideEntry[]> {
  const all: OutsideEntry[] = [];
  let turn = 0;
  for (const part of entries()) {
    for (const entry of part) all.push(entry);
    turn += part.length;
    if (turn < ENTRIES_A_TURN) continue;
    turn = 0;
    yield null;
  }
  return all;
}

function* namedRecords(
  owner: WireName | null,
  entries: readonly OutsideEntry[],
  zone: ExternalZone,
): TransferRecords {
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
): TransferRecords {
  if (owner === null) return;
  const targets = targetsOf(entries, zone);
  for (const one of distinct(targets, ({ target, port }) => `${port} ${keyOf(target)}`))
    yield (to) => writeTarget(to, owner, one, zone.ttl);
}
