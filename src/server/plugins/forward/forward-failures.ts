/** Replies to queries that no upstream answered. */
import { ExchangeError } from '../../transport/upstream/upstream-exchange.ts';
import { EDE, RCODE } from '../../wire/iana.ts';
import { failure, type ExtendedError, type Reply } from '../../wire/reply.ts';
import type { ForwardUpstream } from './forward-upstream.ts';

export interface FailedAttempt {
  readonly to: string;
  readonly error: Error;
}

/** REFUSED, because too many queries are in flight. */
export function refused(text: string): Reply {
  return failure(RCODE.REFUSED, 'forward', new Error(text), [{ code: EDE.OTHER, text }]);
}

/** SERVFAIL, because the packet budget would not allow another packet before the client gives up. */
export function overspent({ to, budget }: ForwardUpstream): Reply {
  const text = `packet budget of ${to} used up (max_pps ${budget!.limit})`;
  return failure(RCODE.SERVFAIL, 'forward', new Error(text), [
    { code: EDE.OTHER, text: 'packet budget of the upstream used up' },
  ]);
}

/** SERVFAIL with the last error for the log. The text that clients see does not include upstream addresses. */
export function gaveUp(failed: readonly FailedAttempt[], order: readonly ForwardUpstream[]): Reply {
  return failure(RCODE.SERVFAIL, 'forward', failed.at(-1)?.error ?? noHealthy, [
    failed.length === 0 ? unhealthy(order) : explain(failed),
  ]);
}

const noHealthy = new Error('no healthy proxies');

function unhealthy(order: readonly ForwardUpstream[]): ExtendedError {
  return {
    code: EDE.NO_REACHABLE_AUTHORITY,
    text: order.length === 0 ? 'no upstream is known' : 'all upstreams are down',
  };
}

function explain(failed: readonly FailedAttempt[]): ExtendedError {
  const byUpstream = new Map<string, string>();
  for (const { to, error } of failed) byUpstream.set(to, wordsFor(error));
  const counts = new Map<string, number>();
  for (const what of byUpstream.values()) counts.set(what, (counts.get(what) ?? 0) + 1);
  const all = byUpstream.size;
  const texts = Array.from(counts, ([what, count]) =>
    all === 1 ? `the upstream ${what}` : `${count} of ${all} upstreams ${what}`,
  );
  const silent = failed.every(
    ({ error }) => error instanceof ExchangeError && error.failure === 'timeout',
  );
  return { code: silent ? EDE.NO_REACHABLE_AUTHORITY : EDE.NETWORK_ERROR, text: texts.join(', ') };
}

function wordsFor(error: Error): string {
  return error instanceof ExchangeError ? words[error.failure] : words.garbled;
}

const words: Readonly<Record<ExchangeError['failure'], string>> = {
  timeout: 'did not answer',
  refused: 'refused the connection',
  unreachable: 'could not be reached',
  closed: 'closed the connection',
  tls: 'failed in TLS',
  http: 'failed in HTTP',
  garbled: 'sent an invalid DNS message',
  local: 'could not be queried: no socket',
};
