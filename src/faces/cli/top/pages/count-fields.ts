/** Formats counts for a client, name or server as detail fields. */
import type { LiveCounts } from '../../../../tools/watch/view.ts';
import type { StyledLine } from '../../screen/styled-line.ts';
import { printLatencies, printNumber, printRcodes, printShare } from '../../live/figures.ts';
import { field } from './top-page.ts';

/** Leaves out the lookup fields if there were no lookups. */
export function countFields(
  row: LiveCounts & {
    readonly lookups?: number;
    readonly failedLookups?: number;
    readonly slowLookups?: number;
  },
  width: number,
): readonly StyledLine[] {
  const { queries, lost, failed, wasted, rcodes, latency, lookups } = row;
  const of = (count: number): string => (queries === 0 ? '' : ` (${printShare(count / queries)})`);
  const lookupTexts =
    lookups === undefined
      ? []
      : [
          printNumber(lookups),
          `${printNumber(row.failedLookups ?? 0)} without a result`,
          ...(row.slowLookups === undefined
            ? []
            : [`${printNumber(row.slowLookups)} took a second or more`]),
        ];
  return [
    ...field('Lookups', lookupTexts.join(', '), width),
    ...field('Queries', printNumber(queries), width),
    ...field('Lost', `${printNumber(lost)}${of(lost)}`, width, lost > 0 ? 'bad' : 'plain'),
    ...field('Failed', `${printNumber(failed)}${of(failed)}`, width, failed > 0 ? 'bad' : 'plain'),
    ...field(
      'Wasted',
      `${printNumber(wasted)}${of(wasted)}, for names that only a search path created`,
      width,
    ),
    ...field('Replies', printRcodes(rcodes), width),
    ...field('Latency', printLatencies(latency), width),
  ];
}
