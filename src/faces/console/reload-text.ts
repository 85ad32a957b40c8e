/** Formats a reload as one line, for the browser and the terminal. */
import type { ReloadMark, ReloadOutcome } from '../../tools/watch/reload-shape.ts';

/** Limit of servers named in a line. */
const SERVERS_MAX = 3;

/** `server 10.244.0.5 and 2 more: 3 of 40 answers changed`. */
export function reloadText({ servers, compared, changed }: ReloadMark): string {
  const named = servers.filter((name) => name !== '').slice(0, SERVERS_MAX);
  const more = servers.length - named.length;
  const rest =
    more === 0
      ? []
      : [named.length === 0 ? `${more} ${more === 1 ? 'server' : 'servers'}` : `${more} more`];
  return `${[...named, ...rest].join(', ')}: ${resultText({ compared, changed })}`;
}

function resultText({ compared, changed }: Pick<ReloadMark, 'compared' | 'changed'>): string {
  if (compared === 0) return 'no name was queried both before and after it';
  return `${changed === 0 ? 'none' : changed} of ${compared} answers changed`;
}

/** `NOERROR A 192.0.2.1, A 192.0.2.2`. */
export function outcomeText({ rcode, records, more }: ReloadOutcome): string {
  const rest = more === 0 ? [] : [`${more} more`];
  const list = [...records, ...rest].join(', ');
  if (list !== '') return `${rcode} ${list}`;
  return rcode === 'NOERROR' ? 'NOERROR, no records' : rcode;
}
