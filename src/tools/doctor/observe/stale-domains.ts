/** Domains for which a server reports that it gives expired answers (RFC 8767 and 8914). */
import { EDE } from '../../../server/wire/iana.ts';
import { parentOf } from './domain-of-name.ts';
import type { Observations } from './observations.ts';

const STALE: readonly number[] = [EDE.STALE_ANSWER, EDE.STALE_NXDOMAIN];

/**
 * True if this server gives expired answers for names of the same domain. An answer for another type
 * then says nothing about the domain's servers.
 */
export function staleTest({
  replyFaults,
}: Observations): (name: string, server: string) => boolean {
  const all = new Set(
    STALE.flatMap((code) => replyFaults.reasons.get(code) ?? []).flatMap(({ names, servers }) =>
      names.list.flatMap(({ name }) => servers.list.map(({ key }) => `${parentOf(name)} ${key}`)),
    ),
  );
  return (name, server) => all.has(`${parentOf(name)} ${server}`);
}

/** Names in such domains that fail or get no reply, because the cache has no expired answer for them. */
export function notStale(observed: Observations): {
  readonly names: readonly string[];
  readonly queries: number;
} {
  const isStale = staleTest(observed);
  const all = [...observed.losses, ...observed.failed].filter(({ name, server }) =>
    isStale(name, server.address),
  );
  return { names: [...new Set(all.map(({ name }) => name))], queries: all.length };
}
