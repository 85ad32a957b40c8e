/** Models how many entries a connection table has at a steady query rate, in virtual time. */
import { ConntrackTable, kernelOf } from '../proxy-rules/conntrack.ts';
import { act, equal, holds, within, type Act } from '../story.ts';

/** The table size on Datadog's nodes, and their query rate when the table was full. */
const ENTRIES = 131_072;

export function tableFullModel(): readonly Act[] {
  const fill = (
    version: string,
    perSecond: number,
  ): { readonly entries: number; readonly dropped: number } => {
    const table = new ConntrackTable({
      ...kernelOf(version),
      max: ENTRIES,
      buckets: ENTRIES / 4,
    });
    let dropped = 0;
    for (let query = 0; query < perSecond * 200; query++) {
      const atMs = (query / perSecond) * 1000;
      const flow = `udp 10.244.${(query >> 15) & 255}.4:${1024 + (query & 0x7fff)} 10.96.0.10:53`;
      if (table.packet(flow, 'original', atMs) === 'dropped') dropped++;
      else table.packet(flow, 'reply', atMs + 1);
      if (query % (10 * perSecond) === 0) table.collect(atMs);
    }
    return { entries: table.size, dropped };
  };
  const rate = 1000;
  const [before, after] = [fill('4.19', rate), fill('5.4', rate)];
  return [
    act(
      'flaw',
      'a kernel before 5.0: an entry stays for 180 s after the answer',
      `${rate} queries a second for 200 s`,
      [
        within('entries in the table', [ENTRIES * 0.99, ENTRIES], before.entries),
        holds('queries are lost', before.dropped > 0, `${before.dropped} lost`),
      ],
    ),
    act('cure', 'a kernel from 5.0 on: 30 s', `${rate} queries a second for 200 s`, [
      within(
        'entries in the table (from the last 30 s, collected every 10 s)',
        [29 * rate, 41 * rate],
        after.entries,
      ),
      equal('lost queries', 0, after.dropped),
    ]),
  ];
}
