/** Rules about `forward`. */
import { isLoopback, parseAddress } from '../../../server/base/ip.ts';
import type { Directive, Token } from '../../../server/corefile/corefile-tree.ts';
import { expandZone } from '../../../server/corefile/zones.ts';
import { blockRule, corefileRule, type LintRule, type Tell, type Told } from '../lint-rule.ts';
import { lineOf, type LintedBlock, type Subject } from '../subject.ts';
import { coreVersionOf, isBefore } from '../target.ts';
import { addressOf, forwardTargets, fromOf, isResolvConf, targetsOf } from '../upstreams.ts';
import { dnsServiceAddresses } from '../workload.ts';
import { readNameservers } from '../../../server/engine/contract/nameservers.ts';
import { isWithin } from '../../../server/wire/within-zone.ts';

function isPrivate(ip: Uint8Array): boolean {
  const [a = 0, b = 0] = ip;
  if (ip.length === 16) return (a & 0xfe) === 0xfc || (a === 0xfe && (b & 0xc0) === 0x80);
  return (
    a === 10 ||
    (a === 172 && b >= 16 && b < 32) ||
    (a === 192 && b === 168) ||
    (a === 100 && b >= 64 && b < 128) ||
    (a === 169 && b === 254)
  );
}

/** node-cache's address, unless it specifies another one. */
const NODE_CACHE = '169.254.20.10';

/** Node caches in the input, with their addresses and whether they forward everything to the cluster. */
function nodeCaches({ corefiles }: Subject): {
  readonly addresses: readonly string[];
  readonly askForAll: boolean;
} {
  const blocks = corefiles
    .filter(({ role }) => role === 'node-cache')
    .flatMap((corefile) => corefile.blocks);
  const asked = blocks.filter(({ zones }) => zones.includes('.')).flatMap(forwardTargets);
  return {
    addresses: [NODE_CACHE, ...blocks.flatMap(({ binds }) => binds)],
    askForAll: asked.length > 0 && asked.every((to) => isClusterAddress(to, blocks)),
  };
}

/** True if one of node-cache's upstreams is the one that it uses for cluster names. */
function isClusterAddress(to: Token, blocks: readonly LintedBlock[]): boolean {
  return blocks.some(
    (block) =>
      !block.zones.includes('.') &&
      forwardTargets(block).some(({ text: word }) => word === to.text),
  );
}

const CIRCLE = 'Each query loops; with the loop plugin, the server exits at startup instead.';

/** Returns the part of this server that an address belongs to, or null if it leads elsewhere. */
function waysBack(
  block: LintedBlock,
  subject: Subject,
): (address: string) => Pick<Told, 'text' | 'hint' | 'severity'> | null {
  const { binds } = block;
  const isServer = block.corefile.role === 'server';
  // Upstream services are node-cache's own way to cluster DNS.
  const own = subject.objects.filter(({ name }) => !/upstream/.test(name));
  const services = isServer ? dnsServiceAddresses(own) : [];
  const ofCluster = subject.corefiles.some(
    ({ role, blocks }) => role === 'server' && blocks.some((each) => each.has('kubernetes')),
  );
  const caches = isServer && ofCluster ? nodeCaches(subject) : { addresses: [], askForAll: false };
  return (address) => {
    const ip = parseAddress(address);
    if (binds.includes(address) || (binds.length === 0 && ip !== null && isLoopback(ip)))
      return { text: 'this server itself', hint: CIRCLE };
    if (services.includes(address))
      return { text: 'the Service in front of this server', hint: CIRCLE };
    if (!caches.addresses.includes(address)) return null;
    const text = 'node-cache, which queries this server';
    if (caches.askForAll) return { text, hint: CIRCLE };
    const hint =
      'Cluster names that this server forwards come back to it, and all other names depend on node-cache.';
    return { text, hint, severity: 'warning' };
  };
}

/** True if the kubelet wrote this resolv.conf for a pod. Most DNS servers use their node's instead. */
function isOfPod(conf: string): boolean {
  return conf.split('\n').some((line) => {
    const [key, ...domains] = line.trim().split(/\s+/);
    return key === 'search' && domains.some((domain) => domain.startsWith('svc.'));
  });
}

const loops: LintRule = blockRule({
  code: 'CF03',
  severity: 'error',
  summary: 'forward leads back to the server itself',
  find(block, tell, subject) {
    const ports = new Set(block.block.keys.map(({ port }) => port));
    const backBy = waysBack(block, subject);
    for (const directive of block.directives('forward')) {
      for (const to of targetsOf(directive)) {
        if (isResolvConf(to)) {
          for (const { file, text: conf } of subject.resolvConfs) {
            const server = readNameservers(conf).find(
              (each) => backBy(each) !== null && (!isOfPod(conf) || /^127\.|^::1$/.test(each)),
            );
            if (server === undefined) continue;
            const back = backBy(server)!;
            tell({
              ...back,
              at: to,
              text: `${file} lists ${server}, which is ${back.text}`,
              remedy:
                'Set the real upstreams in kubelet (resolvConf /run/systemd/resolve/resolv.conf), or list them here.',
            });
          }
          continue;
        }
        const address = addressOf(to);
        if (address === null || !ports.has(address.port)) continue;
        const back = backBy(address.text);
        if (back === null) continue;
        tell({
          ...back,
          at: to,
          text: `${to.text} is ${back.text}`,
          remedy: 'Use the address of the resolver to query.',
        });
      }
    }
  },
});

const mixed: LintRule = blockRule({
  code: 'CF09',
  severity: 'warning',
  summary: 'private and public upstreams in one forward',
  find(block, tell) {
    for (const directive of block.directives('forward')) {
      const policy = lineOf(directive, 'policy')?.args[0]?.text ?? 'random';
      if (policy === 'sequential' || policy === 'first') continue;
      const known = targetsOf(directive).flatMap((token) => {
        const address = addressOf(token);
        return address === null || isLoopback(address.ip) ? [] : [{ token, ip: address.ip }];
      });
      const inside = known.find(({ ip }) => isPrivate(ip));
      const outside = known.find(({ ip }) => !isPrivate(ip));
      if (inside === undefined || outside === undefined) continue;
      tell({
        at: outside.token,
        text: `${outside.token.text} is a public resolver and ${inside.token.text} a private one, and queries go to either (policy ${policy})`,
        hint: 'The public one reports that private names do not exist, and the first answer counts, so they fail at random.',
        remedy:
          'Keep resolvers that give the same answers, or forward the private zones in a separate block.',
      });
    }
  },
});

const unbounded: LintRule = corefileRule({
  code: 'CF10',
  ofCore: true,
  severity: 'warning',
  summary: 'forward without max_concurrent, or with a very low value',
  find({ blocks }, tell) {
    const all = blocks.flatMap((block) => block.directives('forward'));
    const without = all.filter((directive) => lineOf(directive, 'max_concurrent') === null);
    const [first] = without;
    if (first !== undefined) {
      const more = without.length > 1 ? ` (and ${without.length - 1} more)` : '';
      tell({
        at: first.at,
        text: `this forward has no max_concurrent${more}`,
        hint: 'CoreDNS holds every unanswered query, about 2 KB each, without a limit. A slow upstream leads to an OOM kill.',
        remedy: 'Add: max_concurrent 1000 (queries per second × seconds of the slowest answers).',
        fix: without.map((directive) => ({
          kind: 'property',
          directive,
          text: 'max_concurrent 1000',
        })),
      });
    }
    for (const directive of all) {
      const [token] = lineOf(directive, 'max_concurrent')?.args ?? [];
      if (token === undefined || !/^[1-9]\d?$/.test(token.text)) continue;
      tell({
        at: token,
        text: `only ${token.text} queries may be in flight, and further ones are REFUSED`,
        hint: 'musl stops searching at REFUSED.',
        remedy: 'Use queries per second × seconds of the slowest answers; 1000 is typical.',
      });
    }
  },
});

/** Cloud resolvers that limit the number of packets per client, sooner for TCP than for UDP. */
const cloudResolvers: ReadonlySet<string> = new Set([
  '169.254.169.253',
  '169.254.169.254',
  'fd00:ec2::253',
  '168.63.129.16',
  '100.100.2.136',
  '100.100.2.138',
  '169.254.169.250',
]);

const forcedTcp: LintRule = blockRule({
  code: 'CF21',
  severity: 'warning',
  summary: 'force_tcp for a resolver that may not accept it',
  find(block, tell) {
    for (const directive of block.directives('forward')) {
      const line = lineOf(directive, 'force_tcp');
      if (line === null) continue;
      const to = targetsOf(directive).find(({ text: word }) => {
        const [host = ''] = word.split('%');
        return cloudResolvers.has(host) || /(^|\/)resolv\.conf$/.test(word);
      });
      if (to === undefined) continue;
      tell({
        at: line.name,
        text: `every query to ${to.text} goes over TCP`,
        hint: 'Cloud resolvers limit TCP connections, and some listen only on UDP, so all names in the zone fail together.',
        remedy: 'Remove force_tcp here, unless the resolver accepts it.',
      });
    }
  },
});

const unreached: LintRule = blockRule({
  code: 'CF26',
  severity: 'error',
  summary: 'a forward whose names are all matched by an earlier one',
  find(block, tell) {
    const before: { readonly zone: string; readonly directive: Directive }[] = [];
    for (const directive of block.directives('forward')) {
      const zone = fromOf(directive);
      if (zone === null) continue;
      const taker = before.find((each) => {
        if (!isWithin(zone, each.zone) || lineOf(each.directive, 'next') !== null) return false;
        const except = lineOf(each.directive, 'except')?.args ?? [];
        return !except.some(({ text: word }) =>
          expandZone(word)?.some((one) => isWithin(zone, one)),
        );
      });
      before.push({ zone, directive });
      if (taker === undefined) continue;
      const { file, line } = taker.directive.at.place;
      tell({
        at: directive.args[0] ?? directive.at,
        text:
          taker.zone === zone
            ? `a second forward for '${zone}' in the same block is never used`
            : `the forward for '${taker.zone}' above already matches the names in '${zone}'`,
        hint: `forward lines in a block are tried in file order, and the first match (${file}:${line}) gets the query.`,
        remedy:
          taker.zone === zone
            ? 'Merge the two, or put this one in a separate server block.'
            : 'Put this line above the other one, or in a separate server block.',
      });
    }
  },
});

const neverDown: LintRule = blockRule({
  code: 'CF28',
  severity: 'warning',
  summary: 'max_fails 0, which never skips a dead upstream',
  find(block, tell) {
    for (const directive of block.directives('forward')) {
      const line = lineOf(directive, 'max_fails');
      if (line?.args[0]?.text !== '0') continue;
      tell({
        at: line.name,
        text: 'max_fails 0 means that an upstream is always considered up',
        hint: 'Queries still go to a dead upstream and wait for it each time.',
        remedy:
          'Remove the line, unless the upstream is one address with many servers behind it. With 2, the default, a dead upstream is skipped until it answers probes.',
      });
    }
  },
});

const noFailover: LintRule = blockRule({
  code: 'CF29',
  ofCore: true,
  severity: 'warning',
  summary: 'several upstreams without failover, which CoreDNS 1.13.0 and later require',
  find(block, tell, { target }) {
    const version = coreVersionOf(target);
    if (version === null || isBefore(version, '1.13.0')) return;
    for (const directive of block.directives('forward')) {
      const many = targetsOf(directive);
      if (many.length < 2 || lineOf(directive, 'failover') !== null) continue;
      tell({
        at: directive.at,
        text: `SERVFAIL or REFUSED from any of these ${many.length} upstreams is final`,
        hint: 'Up to CoreDNS 1.12.4, the next upstream was queried instead.',
        remedy: 'Add: failover SERVFAIL REFUSED',
        fix: { kind: 'property', directive, text: 'failover SERVFAIL REFUSED' },
      });
    }
  },
});

const uncached: LintRule = blockRule({
  code: 'CF50',
  severity: 'warning',
  summary: 'forward without cache',
  find(block, tell) {
    const [first] = block.directives('forward');
    if (first === undefined || block.has('cache') || block.corefile.fragment) return;
    tell({
      at: first.at,
      text: 'every query goes to the upstream, because this block has no cache',
      hint: 'Pods query the same few names repeatedly, each with several search suffixes.',
      remedy: 'Add: cache 30',
      fix: { kind: 'above', token: first.at, text: 'cache 30' },
    });
  },
});

const removedLoop: LintRule = corefileRule({
  code: 'CF04',
  severity: 'warning',
  summary: 'forward to a resolv.conf without loop',
  find(corefile, tell) {
    if (corefile.fragment) return;
    for (const block of corefile.blocks) forwardsWithoutLoop(block, tell);
  },
});

function forwardsWithoutLoop(block: LintedBlock, tell: Tell): void {
  if (block.has('loop')) return;
  // resolv.conf cannot contain a port, and no Service leads to loopback.
  if (block.isLocal && block.block.keys.every(({ port }) => port !== 53)) return;
  for (const directive of block.directives('forward')) {
    const to = targetsOf(directive).find(({ text: word }) => word.startsWith('/'));
    if (to === undefined) continue;
    tell({
      at: to,
      text: `a forwarding loop through ${to.text} would not be detected, because the block has no loop`,
      hint: 'The server starts anyway, and each query in the loop repeats until memory or CPU is exhausted.',
      remedy: 'Add loop. If the server then exits at startup, fix resolv.conf.',
      fix: { kind: 'above', token: directive.at, text: 'loop' },
    });
    return;
  }
}

export const forwardRules: readonly LintRule[] = [
  loops,
  removedLoop,
  mixed,
  unbounded,
  forcedTcp,
  unreached,
  neverDown,
  noFailover,
  uncached,
];
