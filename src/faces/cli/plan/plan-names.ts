/** Collects the names that clients looked up, as programs spelled them, together with captured replies. */
import { printRemark } from '../../../tools/capture/read/packets/remarks.ts';
import { Reading } from '../../../tools/capture/read/reading.ts';
import { noTimesRemark } from '../../../tools/capture/read/records/query-log.ts';
import { Problem } from '../../../server/base/problem.ts';
import type { SeenLookup } from '../../../tools/capture/pair/seen-exchange.ts';
import { searchOf, walkOf, type NameWalk } from '../../../tools/capture/pair/spelled-name.ts';
import { isDomainName } from '../../../server/corefile/zones.ts';
import { isAddressType, RCODE, TYPE } from '../../../server/wire/iana.ts';
import type { Io } from '../command.ts';
import { readGiven } from '../capture/reading-progress.ts';

export interface SeenName {
  /** True if a reply was NOERROR. */
  exists: boolean;
  /** True if there were records of this type, or null if it was not queried. */
  a: boolean | null;
  aaaa: boolean | null;
}

/** One client's lookups that began with the same name on the wire. */
export interface SeenWalk extends NameWalk {
  lookups: number;
  both: boolean;
}

/** Everything learned from the files. */
export interface SeenNames {
  readonly clients: ReadonlyMap<string, readonly SeenWalk[]>;
  /** The longest search path observed for each client address, in order, without trailing dots. */
  readonly searches: ReadonlyMap<string, readonly string[]>;
  /** By absolute name. */
  readonly names: ReadonlyMap<string, SeenName>;
  /** Names from lists, with their counts. */
  readonly listed: ReadonlyMap<string, number>;
  /** True if a message has already explained why a file has no names. */
  readonly explained: boolean;
}

/** Limits on stored names, and on pairs of a client and a name. */
const WALKS_MAX = 200_000;

/** If a file has more odd lines per entry than this, it is not a list of names. */
const ODD_PER_ENTRY_MAX = 2;

/** Reads captures, dnstap streams, logs and lists. */
export async function readNames(files: readonly string[], io: Io): Promise<SeenNames> {
  const clients = new Map<string, Map<string, SeenWalk>>();
  const names = new Map<string, SeenName>();
  const listed = new Map<string, number>();
  const searches = new Map<string, readonly string[]>();
  let walks = 0;
  let leftOut = 0;
  let explained = false;
  const take = (lookup: SeenLookup): void => {
    if (!lookup.exchanges.some(({ type }) => isAddressType(type))) return;
    for (const { name, type, rcode, answers, server } of lookup.exchanges) {
      if (rcode !== RCODE.NOERROR && rcode !== RCODE.NXDOMAIN) continue;
      if (!names.has(name) && names.size >= WALKS_MAX) continue;
      const known = names.get(name) ?? { exists: false, a: null, aaaa: null };
      names.set(name, known);
      if (rcode === RCODE.NOERROR) known.exists = true;
      // Logs contain neither the server nor the records.
      if (server.address === '') continue;
      if (type === TYPE.A) known.a = known.a === true || answers > 0;
      if (type === TYPE.AAAA) known.aaaa = known.aaaa === true || answers > 0;
    }
    const theirs = clients.get(lookup.client) ?? new Map<string, SeenWalk>();
    const walked = searchOf(lookup);
    if (walked.length > (searches.get(lookup.client)?.length ?? 0))
      searches.set(lookup.client, walked);
    const { first, stem } = walkOf(lookup);
    const key = `${first} ${stem ?? ''}`;
    const walk = theirs.get(key);
    const both = lookup.exchanges.some(({ type }) => type === TYPE.AAAA);
    if (walk !== undefined) {
      walk.lookups++;
      walk.both ||= both;
    } else if (walks < WALKS_MAX) {
      walks++;
      clients.set(lookup.client, theirs.set(key, { first, stem, lookups: 1, both }));
    } else leftOut++;
  };
  for (const file of files) {
    let lookups = 0;
    let entries = 0;
    let odd = 0;
    let firstOdd = '';
    const reading = new Reading({
      lookup(lookup) {
        lookups++;
        take(lookup);
      },
      entry(line) {
        const [name = '', count = '1', rest = '#'] = line.trim().split(/\s+/);
        const times = Number(count);
        if (name === '' || name.startsWith('#')) return;
        const isEntry = isDomainName(name) && Number.isSafeInteger(times) && times > 0;
        if (!isEntry || !rest.startsWith('#')) {
          if (odd++ === 0) firstOdd = line.trim().slice(0, 60);
          return;
        }
        entries++;
        if (listed.size < WALKS_MAX)
          listed.set(name.toLowerCase(), (listed.get(name.toLowerCase()) ?? 0) + times);
      },
    });
    await readGiven(reading, file, io);
    for (const remark of reading.remarks.list)
      // Savings do not depend on query times.
      if (remark.text !== noTimesRemark) {
        io.err(`ndots plan: ${printRemark(remark)}\n`);
        explained ||= lookups === 0;
      }
    if (lookups === 0 && odd > entries * ODD_PER_ENTRY_MAX) throw notNames(file, firstOdd);
    if (lookups === 0 && odd > 0)
      io.err(
        `ndots plan: ${file}: ${odd === 1 ? 'a line is' : `${odd} lines are`} neither NAME nor NAME LOOKUPS, and ignored; the first: ${JSON.stringify(firstOdd)}\n`,
      );
  }
  if (leftOut > 0)
    io.err(
      `ndots plan: plan covers at most ${WALKS_MAX} pairs of a name and a client, so ${leftOut} lookups are left out\n`,
    );
  return {
    clients: new Map([...clients].map(([client, theirs]) => [client, [...theirs.values()]])),
    searches,
    names,
    listed,
    explained,
  };
}

function notNames(file: string, line: string): Problem {
  return new Problem({
    code: 'not-names',
    text: `${file} is not a capture, a query log, or a list of names`,
    hint: `Most lines are neither NAME nor NAME LOOKUPS. The first one: ${JSON.stringify(line)}`,
    remedy: 'Give a capture, a dnstap file, a CoreDNS log, or a file with one name per line.',
  });
}
