/** Rules that query upstreams, to see whether and how they answer, and whether they are the server itself. */
import type { Token } from '../../../server/corefile/corefile-tree.ts';
import { type Subject } from '../subject.ts';
import { addressOf, fromOf, isResolvConf, targetsOf } from '../upstreams.ts';
import { askOne, isThere, question, serverText } from '../../probe/probe-queries.ts';
import type { ProbeServer } from '../../probe/network.ts';
import { readNameservers } from '../../../server/engine/contract/nameservers.ts';
import { TYPE } from '../../../server/wire/iana.ts';
import { domainIn } from './cluster-configuration.ts';
import { askUpstream, shortcomingOf } from './upstreams.ts';
import { liveRule, type LiveRule } from './live-rule.ts';
import { isWithin } from '../../../server/wire/within-zone.ts';

/** A word in a Corefile that refers to a server. */
interface NamedServer {
  readonly at: Token;
  readonly server: ProbeServer;
  /** Absolute. */
  readonly zone: string;
  /** `10.0.0.2`, or `10.0.0.2 of /etc/resolv.conf`. */
  readonly text: string;
  /** `server` if the block serves cluster names. */
  readonly role: 'server' | 'node-cache';
}

/** More upstreams are not asked. */
const UPSTREAMS_MAX = 64;

/** Upstreams over plain DNS, including those in given files with the resolv.conf format. */
function namedIn({ corefiles, resolvConfs }: Subject): readonly NamedServer[] {
  const found: NamedServer[] = [];
  for (const { blocks, role, isAssumed } of corefiles)
    for (const block of blocks)
      for (const directive of block.directives('forward')) {
        const from = fromOf(directive) ?? '.';
        const zone = block.zones.find((own) => isWithin(own, from)) ?? from;
        for (const at of targetsOf(directive)) {
          const address = addressOf(at);
          if (address?.scheme === 'dns' && !isAssumed(at.place)) {
            const server = { host: address.text, port: address.port };
            found.push({ at, server, zone, text: at.text, role });
          }
          if (isResolvConf(at))
            for (const { file, text } of resolvConfs)
              for (const host of readNameservers(text).slice(0, 3))
                found.push({
                  at,
                  server: { host, port: 53 },
                  zone,
                  text: `${host} of ${file}`,
                  role,
                });
        }
      }
  return found.slice(0, UPSTREAMS_MAX);
}

const silent: LiveRule = liveRule({
  code: 'CF53',
  severity: 'error',
  summary: 'forward to a server that does not answer',
  async ask(subject, { asking }, tell) {
    for (const { named, replies } of await asked(subject, asking)) {
      if (shortcomingOf(replies) !== 'silent') continue;
      tell({
        at: named.at,
        text: `${named.text} does not answer: ${replies.udp.failure ?? 'no reply'}`,
        hint: `Queried from this machine for ${named.zone} SOA over UDP, with and without EDNS.`,
        remedy:
          'Remove it, or check that its UDP port 53 is open. The server may be on a different network.',
      });
    }
  },
});

const poor: LiveRule = liveRule({
  code: 'CF54',
  severity: 'warning',
  summary: 'forward to a server that answers, but not over TCP or with EDNS',
  async ask(subject, { asking }, tell) {
    for (const { named, replies } of await asked(subject, asking)) {
      const what = shortcomingOf(replies);
      if (what === 'no-tcp')
        tell({
          at: named.at,
          text: `${named.text} answers over UDP but not over TCP: ${replies.tcp.failure ?? 'no reply'}`,
          hint: 'Answers that do not fit into a packet need TCP, so such names fail.',
          remedy: 'Open TCP port 53 to it.',
        });
      if (what === 'no-edns')
        tell({
          at: named.at,
          text: `${named.text} answers only without EDNS`,
          hint: 'Every answer of more than 512 bytes needs a second query over TCP, and queries with EDNS get no reply.',
          remedy: 'A firewall or proxy in between must support EDNS (RFC 6891).',
        });
    }
  },
});

const loops: LiveRule = liveRule({
  code: 'CF55',
  severity: 'error',
  summary: 'forward to a server that answers for the cluster, which is a forwarding loop',
  async ask(subject, { asking }, tell) {
    const domain = domainIn(subject);
    if (domain === null) return;
    const name = `dns-version.${domain}.`;
    await Promise.all(
      namedIn(subject)
        // Zones may be forwarded to another cluster, and from a node cache to this one, but not all names.
        .filter(({ role, zone }) => role === 'server' && zone === '.')
        .map(async ({ at, server, text }) => {
          const reply = await askOne(asking, server, question(name, TYPE.TXT));
          if (!isThere(reply)) return;
          tell({
            at,
            text: `${text} answers ${name} TXT, which only a cluster's DNS server does`,
            hint: 'It forwards to this server, or is this server, so unknown names loop until memory is exhausted.',
            remedy: 'Use a resolver outside the cluster.',
          });
        }),
    );
  },
});

type AskedUpstream = {
  readonly named: NamedServer;
  readonly replies: Awaited<ReturnType<typeof askUpstream>>;
};

/** Queries each subject's upstreams only once for all rules. */
const remembered = new WeakMap<Subject, Promise<readonly AskedUpstream[]>>();

function asked(
  subject: Subject,
  asking: Parameters<typeof askUpstream>[0],
): Promise<readonly AskedUpstream[]> {
  const known = remembered.get(subject);
  if (known !== undefined) return known;
  const servers = new Map<string, ReturnType<typeof askUpstream>>();
  const all = Promise.all(
    namedIn(subject).map(async (named) => {
      const key = `${serverText(named.server)} ${named.zone}`;
      const replies = servers.get(key) ?? askUpstream(asking, named.server, named.zone);
      servers.set(key, replies);
      return { named, replies: await replies };
    }),
  );
  remembered.set(subject, all);
  return all;
}

export const upstreamRules: readonly LiveRule[] = [silent, poor, loops];
