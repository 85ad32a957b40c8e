/** `--recorded`: generates load from the queries in a capture, a dnstap stream or a log. */
import { printRemark } from '../../../tools/capture/read/packets/remarks.ts';
import { Reading } from '../../../tools/capture/read/reading.ts';
import { noTimesRemark } from '../../../tools/capture/read/records/query-log.ts';
import { absoluteName } from '../../../server/corefile/zones.ts';
import { Problem } from '../../../server/base/problem.ts';
import { FLAG } from '../../../server/wire/iana.ts';
import { writeMessage } from '../../../server/wire/message.ts';
import { NameError } from '../../../server/wire/name.ts';
import { Query } from '../../../server/transport/query.ts';
import type { Io } from '../command.ts';
import { readGiven } from '../capture/reading-progress.ts';

/** Limit on queries, which are held in memory. A longer recording starts over from the beginning. */
const QUERIES_MAX = 1_000_000;

/**
 * Reads the queries in their original order and number, including retries and search path steps. Each keeps its
 * recorded EDNS size, or has no EDNS.
 * @param path `-` for standard input
 * @throws Problem if there are no queries
 */
export async function recordedQueries(
  path: string,
  io: Pick<Io, 'err' | 'signal' | 'progress'>,
): Promise<readonly Query[]> {
  const queries: Query[] = [];
  // Clients repeat names, so identical queries are shared.
  const known = new Map<string, Query | null>();
  const reading = new Reading({
    begun({ name, type, udpSize }) {
      if (name === '' || queries.length === QUERIES_MAX) return;
      const key = `${name} ${type} ${udpSize}`;
      let query = known.get(key);
      if (query === undefined) known.set(key, (query = queryOf(name, type, udpSize)));
      if (query !== null) queries.push(query);
    },
  });
  const isEnough = (): boolean => queries.length === QUERIES_MAX || io.signal.aborted;
  await readGiven(reading, path, io, isEnough);
  for (const remark of reading.remarks.list)
    // Options determine timing and rate.
    if (remark.text !== noTimesRemark) io.err(`ndots bench: ${printRemark(remark)}\n`);
  if (queries.length === QUERIES_MAX)
    io.err(`ndots bench: only the first ${QUERIES_MAX} queries in ${path} are sent\n`);
  if (queries.length > 0) return queries;
  throw new Problem({
    code: 'load-names',
    text: `${path === '-' ? 'standard input' : path} contains no queries`,
    remedy:
      'Give a capture (pcap, pcapng), a dnstap file, or an ndots or CoreDNS query log. For a list of names, use --names.',
  });
}

/** @returns null if the name cannot be encoded */
function queryOf(name: string, type: number, udpSize: number): Query | null {
  const question = [{ name: absoluteName(name), type, class: 1 }];
  const edns = udpSize === 0 ? null : { udpSize, version: 0, dnssecOk: false, options: [] };
  const none = { rcode: 0, answer: [], authority: [], additional: [] };
  try {
    const bytes = writeMessage({ ...none, id: 0, flags: FLAG.RD, question, edns });
    const query = new Query();
    return query.read(bytes, 0, bytes.length) === 'serve' ? query.keep() : null;
  } catch (error) {
    if (error instanceof NameError) return null;
    throw error;
  }
}
