/** Sockets that get only one reply each, however many queries they send. */
import { TYPE } from '../../../server/wire/iana.ts';
import { firstTries } from '../observe/losses.ts';
import type { Observations } from '../observe/observations.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';
import { listed } from '../texts.ts';
import { MIN_CASES } from '../thresholds/evidence.ts';
import { ONE_REPLY } from '../thresholds/transport.ts';

export const oneReply: FindingKind = {
  code: 'ND3022',
  title: 'A device in transit drops all but the first reply to each socket',
  name: 'a device that lets only one reply per flow through',
  inCapture(observed, claims) {
    const hit = hitClients(observed, new Set(claims.open));
    if (hit.length === 0)
      return claims.open.length < MIN_CASES
        ? excluded('hardly any query is lost, or another finding explains the losses')
        : unknown('few sockets sent two queries, or some sockets got two replies');
    const clients = new Set(hit.map(({ client }) => client));
    const sockets = hit.reduce((sum, each) => sum + each.sockets, 0);
    const losses = claims.open.filter(({ client }) => clients.has(client.address));
    claims.take(losses);
    const seen = observed.losses.filter(
      ({ client, hops }) =>
        clients.has(client.address) && hops.some(({ repliedMs }) => repliedMs !== null),
    );
    return {
      severity: 'critical',
      confidence: 0.9,
      seen: [
        `${sockets} sockets on ${listed([...clients])} sent two or more queries each, and each got exactly one reply. The other replies (A or AAAA) never arrived.`,
        seen.length > 0 &&
          `${seen.length} of the missing replies were seen on their way back, so the servers did send them.`,
      ],
      why: 'A stateful firewall or NAT device in between forgets a UDP flow at its first reply, and drops later ones. glibc and musl query A and AAAA from one socket, so one of the two replies is always missing, and each lookup waits 5 s. Go opens a socket for each query and is not affected.',
      fix: [
        'Find the device between the clients and the DNS server, and make it keep UDP flows to port 53 for several seconds after a reply. On firewalls, look for DNS inspection or "one reply per request".',
        'Until then, for glibc pods, set single-request-reopen in dnsConfig options, which opens a socket for each query. musl has no such option.',
        'Or run a node-local cache in front of that device, with force_tcp to its upstreams.',
      ],
      prove:
        'in such a pod, getent ahosts kubernetes.default takes 5 s, but only a few milliseconds with RES_OPTIONS=single-request-reopen',
      disproved: 'a socket gets two replies',
      exchanges: losses,
    };
  },
};

/** Clients whose sockets each got one reply at most, although many sent more queries. */
function hitClients(
  { flows }: Observations,
  open: ReadonlySet<Observations['losses'][number]>,
): readonly { readonly client: string; readonly sockets: number }[] {
  const losses = firstTries([...open]);
  return [...Map.groupBy(losses, ({ client }) => client.address)].flatMap(([client, theirs]) => {
    const sockets = new Set(theirs.flatMap((loss) => flows.get(loss) ?? []));
    const answered = [...sockets].filter((flow) => flow.asked - flow.lost === 1);
    if (answered.length < ONE_REPLY.sockets) return [];
    const servers = new Set(theirs.map(({ server }) => server.address));
    const all = [...servers]
      .flatMap((server) => flows.to(server))
      .filter((flow) => flow.client === client);
    const twice = all.filter((flow) => flow.asked - flow.lost > 1);
    const silent = all.filter((flow) => flow.asked === flow.lost);
    if (twice.length + silent.length > ONE_REPLY.others * answered.length) return [];
    // If one type is dropped, each pair also gets only one reply.
    const ofType = (type: number): number => theirs.filter((loss) => loss.type === type).length;
    if (Math.min(ofType(TYPE.A), ofType(TYPE.AAAA)) < MIN_CASES) return [];
    return [{ client, sockets: answered.length }];
  });
}
