/** Describes a limit on waiting queries that a slow upstream fills. Further queries are refused at once. */
import type { ServerView } from './server-view.ts';

/** Texts of a finding. */
interface LimitTexts {
  readonly title: string;
  readonly why: string;
  readonly fix: readonly string[];
}

/**
 * @param server the server that refuses
 * @param upstream its slow upstream, or null if the capture does not show which one it is
 */
export function waitingLimitTexts(server: string, upstream: ServerView | null): LimitTexts {
  const slow = upstream === null ? 'the upstream' : `the upstream ${upstream.address}`;
  return {
    title: 'A limit on waiting queries is used up because an upstream is slow',
    why: `${server} forwards a limited number of queries at a time (max_concurrent in CoreDNS’s forward, dns-forward-max in dnsmasq) and refuses any more at once. Replies from ${slow} take long, so waiting queries fill the limit, which all clients share. Cluster names are not forwarded, so they are still answered.`,
    fix: [
      `Find out why ${slow} is slow by querying it from a DNS pod’s node. Use a faster upstream or several, and a cache.`,
      'Raise the limit (coredns_forward_max_concurrent_rejects_total counts refusals; dnsmasq logs “Maximum number of concurrent DNS queries reached”).',
    ],
  };
}
