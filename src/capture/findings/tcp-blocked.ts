import { excluded, listed, sentence, share, unknown, type Rule } from './finding.ts';

/** A reply that does not fit is announced by TC; TCP, by which the whole would come, does not get through. */
export const tcpBlocked: Rule = {
  code: 'ND3011',
  title: 'Large answers cannot be fetched: DNS over TCP does not get through',
  name: 'DNS over TCP that is blocked',
  check(observed, claims) {
    const { truncations } = observed;
    if (truncations.length === 0) return unknown('no answer was too large for UDP');
    const failed = truncations.filter(({ tcp }) => tcp === 'silent' || tcp === 'refused');
    const none = truncations.filter(({ tcp }) => tcp === 'none');
    const fetched = truncations.length - failed.length - none.length;
    const hit = failed.length > 0 ? failed : fetched === 0 ? none : [];
    if (hit.length === 0) return excluded('truncated answers were fetched by TCP');
    const refused = failed.filter(({ tcp }) => tcp === 'refused').length;
    const names = [...new Set(hit.map(({ exchange }) => exchange.name))];
    const servers = [...new Set(hit.map(({ exchange }) => exchange.server.address))];
    const exchanges = hit.map(({ exchange }) => exchange);
    const keys = new Set(exchanges.map(({ client, name }) => `${client.address} ${name}`));
    claims.take(
      claims.open.filter(
        ({ client, name, protocol }) => protocol === 'tcp' || keys.has(`${client.address} ${name}`),
      ),
    );
    return {
      code: this.code,
      title: this.title,
      severity: 'critical',
      confidence: failed.length > 0 ? 0.95 : 0.6,
      seen: [
        sentence(`${truncations.length} answers were too large for UDP (TC): ${listed(names)}`),
        failed.length > 0
          ? `${share(failed.length, truncations.length)} of the TCP connections that followed were ${refused === failed.length ? 'refused' : refused === 0 ? 'not answered' : 'refused or not answered'}.`
          : 'No client asked again by TCP. (If the capture has UDP only, it cannot show that.)',
      ],
      why:
        failed.length > 0
          ? 'The answer says that it is not whole and has to be asked for again by TCP, and port 53 by TCP is closed: by a network policy that names UDP only, a firewall, or a server that does not listen there. glibc waits more than a minute when the packets vanish; a refusal fails at once.'
          : 'The answer says that it is not whole and has to be asked for again by TCP. Some resolvers cannot: musl before 1.2.4 (Alpine before 3.18), busybox and evdns use what has come, or fail.',
      fix:
        failed.length > 0
          ? [
              `Open TCP port 53 to ${listed(servers)} wherever UDP port 53 is open (network policies, firewalls, security groups).`,
              'Fewer records in one answer: a service instead of a headless one, fewer endpoints.',
            ]
          : [
              'A newer base image (musl 1.2.4, Alpine 3.18).',
              'Fewer records in one answer: a service instead of a headless one, fewer endpoints.',
            ],
      prove: `ndots query ${names[0]} @${servers[0]} +tcp`,
      disproved: 'that query is answered from the client’s network',
      exchanges,
    };
  },
};
