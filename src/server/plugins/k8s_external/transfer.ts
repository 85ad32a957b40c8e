/** Provides the plugin's zones as records for transfer. */
import { appendTo } from '../../base/append-to.ts';
import { distinct } from '../../base/distinct.ts';
import { bytesKey } from '../../base/copy-bytes.ts';
import type { OutsideEntry, OutsideName, OutsideServices } from '../../engine/contract/ports.ts';
import { NAME_MAX, joinNames, suffixAt, type WireName } from '../../wire/name.ts';
import { SECTION } from '../../wire/writer.ts';
import {
  streamOf,
  type Transferable,
  type TransferRecords,
  type TransferSource,
} from '../../zone/transfer-source.ts';
import { TYPE } from '../../wire/iana.ts';
import {
  addressesOf,
  aliasOf,
  targetsOf,
  writeAddress,
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
      const zone = zones.find(
        (one) => one.name.length === length && suffixAt(name, one.name, length) === 0,
      );
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
    records: () => streamOf(recordsOf(zone, serial, services, headless), RECORD_MAX),
  };
}

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
  yield (to) => to.named(SECTION.answer, name, TYPE.NS, ttl, server);
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
      appendTo(hosts, bytesKey(entry.below), entry);
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
    yield (to) => to.named(SECTION.answer, owner, TYPE.CNAME, zone.ttl, alias);
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
  for (const one of distinct(targets, ({ target, port }) => `${port} ${bytesKey(target)}`))
    yield (to) => writeTarget(to, owner, one, zone.ttl);
}
