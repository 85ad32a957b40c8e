/** The head of a capture report, with the input and the number of findings. */
import { count } from '../../../server/base/counted.ts';
import type { AddressOwners } from '../../pods/address-owners.ts';
import { unfinishedText } from '../../capture/pair/seen-exchange.ts';
import type { Reading } from '../../capture/read/reading.ts';
import type { Diagnosis } from '../diagnosis.ts';
import type { Finding } from '../findings/finding.ts';
import type { Observations } from '../observe/observations.ts';
import { share } from '../texts.ts';
import { OUTAGE_SHARE } from '../thresholds/evidence.ts';
import { MIN_HEAD_ERRORS } from '../thresholds/verdict.ts';

/** Two lines about the input. */
export function captureHead(
  { totals }: Reading,
  observed: Observations,
  { findings }: Diagnosis,
  owners: AddressOwners,
): string {
  const { asked, lost } = observed.total;
  const named = observed.clients.list.filter(({ address }) => owners.has(address)).length;
  const failing = errorsOf(observed);
  const times =
    totals.lastMs > totals.firstMs
      ? `, ${((totals.lastMs - totals.firstMs) / 1000).toFixed(0)} s`
      : '';
  const { lines, errors } = observed.logged;
  const ofLogs =
    lines === 0
      ? []
      : [`${count(lines, 'line', 'lines')} of logs, ${count(errors, 'error', 'errors')}`];
  const found = severityCounts(findings);
  const { slowLookups, silentLookups } = observed;
  const silent = silentLookups === 0 ? '' : `, ${silentLookups} got no reply`;
  const waits = `${slowLookups - silentLookups} took a second or more${silent}`;
  if (asked === 0 && lines > 0) return [...ofLogs, found].join('\n');
  return [
    ...ofLogs,
    `${count(asked, 'query', 'queries')}${times}, ${count(observed.lookups, 'lookup', 'lookups')} (${waits}), ${lost} without reply${unfinishedText(observed.unfinished)}`,
    `${observed.clients.leftOut > 0 ? 'more than ' : ''}${count(observed.clients.size, 'client', 'clients')}${owners.size > 0 ? ` (${named} with a name)` : ''}, ${count(observed.servers.size, 'server', 'servers')}; ${found}`,
    ...(failing === '' ? [] : [failing]),
  ].join('\n');
}

function errorsOf({ total }: Observations): string {
  const replies = total.asked - total.lost;
  const kinds = [
    ['SERVFAIL', total.servfail],
    ['REFUSED', total.refused],
    ['other errors (FORMERR, NOTIMP …)', total.error],
  ] as const;
  return kinds
    .filter(([, many]) => many >= MIN_HEAD_ERRORS && many >= OUTAGE_SHARE * replies)
    .map(([name, many]) => `${share(many, replies)} replies are ${name}`)
    .join('; ');
}

/** `1 critical, 2 warning, 0 info`. */
export function severityCounts(findings: readonly Finding[]): string {
  return (['critical', 'warning', 'info'] as const)
    .map((each) => `${findings.filter(({ severity }) => severity === each).length} ${each}`)
    .join(', ');
}
