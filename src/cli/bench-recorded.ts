/** `--recorded`: the queries of a capture, a dnstap stream or a log, as a load. */
import { openFile } from '../capture/input.ts';
import { printRemark } from '../capture/packets/remarks.ts';
import { Reading } from '../capture/reading.ts';
import { absoluteName } from '../corefile/zones.ts';
import { Problem } from '../base/problem.ts';
import { makeQuery, type Query } from '../wire/query.ts';
import { NameError, parseName } from '../wire/name.ts';
import type { Io } from './command.ts';

/** A longer recording is asked from its beginning again: each query takes some 200 bytes. */
const QUERIES_MAX = 1_000_000;

/**
 * The queries of a file, in their order and as often as they were asked: what clients repeated and walked is in them.
 * @throws Problem if there are none
 */
export async function recordedQueries(
  path: string,
  io: Pick<Io, 'err'>,
): Promise<readonly Query[]> {
  const queries: Query[] = [];
  const reading = new Reading({
    begun({ name, type }) {
      if (name === '' || queries.length === QUERIES_MAX) return;
      try {
        queries.push(makeQuery(parseName(absoluteName(name)), type));
      } catch (error) {
        if (!(error instanceof NameError)) throw error;
      }
    },
  });
  await reading.readWhole(
    await openFile(path, reading.remarks),
    () => queries.length === QUERIES_MAX,
  );
  for (const remark of reading.remarks.list) io.err(`ndots bench: ${printRemark(remark)}\n`);
  if (queries.length === QUERIES_MAX)
    io.err(`ndots bench: of ${path} the first ${QUERIES_MAX} queries are sent\n`);
  if (queries.length > 0) return queries;
  throw new Problem({
    code: 'load-names',
    text: `${path} holds no queries`,
    remedy:
      'A capture (pcap, pcapng), a dnstap file, or a log of ndots or CoreDNS is taken; a list of names is --names.',
  });
}
