/** Rules about `kubernetes`. */
import { child, list } from '../../../server/base/json-object.ts';
import { blockRule, corefileRule, type LintRule } from '../lint-rule.ts';
import { lineOf, type LintedBlock } from '../subject.ts';
import { dnsServerIn } from '../workload.ts';
import {
  isReverseZone,
  primaryZone,
  type syntax,
} from '../../../server/plugins/kubernetes/contract/kubernetes-options.ts';
import { isBelow, isWithin } from '../../../server/wire/within-zone.ts';
import type { Key } from '../../../server/corefile/corefile-tree.ts';

type Kubernetes = typeof syntax;

/** A quantity of memory in bytes, for example `170Mi`. Null if there is none or it is spelled differently. */
function memoryBytes(value: unknown): number | null {
  const [, number = '', unit = ''] = /^(\d+(?:\.\d+)?)(Ki|Mi|Gi|k|M|G)?$/.exec(String(value)) ?? [];
  if (number === '') return null;
  const units: Readonly<Record<string, number>> = {
    Ki: 2 ** 10,
    Mi: 2 ** 20,
    Gi: 2 ** 30,
    k: 1e3,
    M: 1e6,
    G: 1e9,
  };
  return Number(number) * (units[unit] ?? 1);
}

/** Memory per pod in CoreDNS's watch, and for the rest of the process, according to its scaling guide. */
const BYTES_FOR_PODS = 250 * 2 ** 20;

const podMemory: LintRule = blockRule({
  code: 'CF12',
  ofCore: true,
  severity: 'warning',
  summary: 'pods verified with a memory limit that is too low for watching pods',
  find(block, tell, { objects }) {
    const [use] = block.uses<Kubernetes>('kubernetes');
    if (use?.given.pods !== 'verified') return;
    for (const object of objects) {
      const server = dnsServerIn(object);
      if (server?.role !== 'server') continue;
      const limits = child(child(server.container.value, 'resources'), 'limits');
      const bytes = memoryBytes(limits['memory']);
      if (bytes === null || bytes >= BYTES_FOR_PODS) continue;
      tell({
        at: lineOf(use.directive, 'pods') ?? use.directive,
        text: `pods verified watches every pod in the cluster, with a memory limit of ${String(limits['memory'])} (${object.kind} ${object.name})`,
        hint: 'A few thousand more pods, or a relist, can get all replicas OOM-killed at once.',
        remedy:
          'Raise the limit (CoreDNS needs about 1 KB per pod, and twice that during a relist), or use pods insecure or disabled.',
      });
    }
  },
});

const wildcardTls: LintRule = blockRule({
  code: 'CF13',
  severity: 'warning',
  summary: 'pods insecure while certificates cover pod names',
  find(block, tell, { objects }) {
    const [use] = block.uses<Kubernetes>('kubernetes');
    const zone = use === undefined ? null : primaryZone(use.given.zones);
    if (use?.given.pods !== 'insecure' || zone === null) return;
    for (const { kind, name, value } of objects) {
      if (kind !== 'Certificate') continue;
      const names = list(child(value, 'spec'), 'dnsNames').filter(
        (each): each is string => typeof each === 'string',
      );
      const wild = names.find(
        (each) =>
          each.startsWith('*.') && `.${each}.`.includes('.pod.') && `${each}.`.endsWith(zone),
      );
      if (wild === undefined) continue;
      tell({
        at: lineOf(use.directive, 'pods') ?? use.directive,
        text: `pods insecure gives every address a name that certificate ${name} covers (${wild})`,
        hint: '1-2-3-4.NAMESPACE.pod resolves to 1.2.3.4, so any machine with that address passes for a pod in the cluster.',
        remedy: 'Use pods verified, or pods disabled if no client uses such names.',
      });
    }
  },
});

const leakingNames: LintRule = blockRule({
  code: 'CF24',
  severity: 'warning',
  summary: 'kubernetes with fallthrough for all zones',
  find(block, tell) {
    const [use] = block.uses<Kubernetes>('kubernetes');
    const line = use === undefined ? null : lineOf(use.directive, 'fallthrough');
    if (use === undefined || line === null || line.args.length > 0 || !block.has('forward')) return;
    const reverse = use.directive.args.filter(({ text: word }) =>
      /(in-addr|ip6)\.arpa\.?$/.test(word),
    );
    const zones = reverse.map(({ text: word }) => word).join(' ');
    tell({
      at: line.name,
      text: 'cluster names that do not exist are forwarded to the upstream',
      hint: 'Each wrong search suffix leaves the cluster, which is slow, adds load, and discloses names.',
      remedy:
        zones === ''
          ? 'Remove fallthrough, or list the zones that other plugins serve, too.'
          : `List the zones that other plugins serve, too: fallthrough ${zones}`,
      fix:
        zones === ''
          ? { kind: 'remove', token: line.name }
          : { kind: 'append', token: line.name, text: zones },
    });
  },
});

const wholeReverse: LintRule = blockRule({
  code: 'CF25',
  severity: 'note',
  summary: 'the whole reverse tree without fallthrough',
  find(block, tell) {
    const [use] = block.uses<Kubernetes>('kubernetes');
    if (use === undefined || !block.has('forward')) return;
    for (const token of use.directive.args) {
      const zone = `${token.text.replace(/\.$/, '')}.`;
      if (zone !== 'in-addr.arpa.' && zone !== 'ip6.arpa.') continue;
      const { fallthrough } = use.given;
      if (fallthrough?.some((each) => each === '.' || zone.endsWith(each)) === true) continue;
      tell({
        at: token,
        text: `${token.text} is served as the cluster's own, so addresses outside the cluster have no names`,
        hint: 'PTR queries for nodes, databases and internet hosts get NXDOMAIN.',
        remedy:
          'Use the pod and service ranges (such as 10.244.0.0/16), or fallthrough in-addr.arpa ip6.arpa.',
      });
    }
  },
});

const neverAsked: LintRule = corefileRule({
  code: 'CF51',
  severity: 'warning',
  summary: 'a plugin with zones that its server block never receives queries for',
  find({ blocks }, tell) {
    for (const block of blocks) {
      // Names may be others behind a rewrite.
      if (block.has('rewrite')) continue;
      const others = blocks.filter((other) => other !== block && hasSameAddresses(block, other));
      const touches = (zone: string): boolean =>
        block.block.keys.some(
          (own) =>
            isWithin(own.zone, zone) ||
            (isWithin(zone, own.zone) && takerOf(zone, own, others) === undefined),
        );
      for (const name of ['kubernetes', 'forward', 'hosts', 'file', 'etcd', 'cache', 'autopath']) {
        for (const { directive, given } of block.uses(name)) {
          const zones = zonesOf(given);
          const away = zones.filter((zone) => !touches(zone) && !isReverseZone(zone));
          if (
            away.length === 0 ||
            away.length < zones.filter((zone) => !isReverseZone(zone)).length
          )
            continue;
          const [zone = '.'] = away;
          const taker = block.block.keys
            .map((own) => takerOf(zone, own, others))
            .find((key) => key !== undefined);
          const noQuery = `no query for '${zone}' reaches the server block for '${block.zones.join(' ')}'`;
          tell({
            at: directive.at,
            text:
              taker === undefined ? noQuery : `${noQuery}: the block for '${taker.zone}' gets them`,
            hint: 'A query goes only to the block with the longest zone that matches its name.',
            remedy:
              taker === undefined
                ? `Serve the zone in a separate block: ${zone.replace(/(.)\.$/, '$1')}:${block.block.keys[0]?.port ?? 53} { … }`
                : `Move ${name} to the block for '${taker.text}' (${taker.place.file}:${taker.place.line}), or remove that block.`,
          });
        }
      }
    }
  },
});

/** True if both blocks listen on the same addresses (`bind`) and the other one serves all clients. */
function hasSameAddresses(block: LintedBlock, other: LintedBlock): boolean {
  const bound = ({ binds }: LintedBlock): string => binds.toSorted().join(' ');
  return !other.has('view') && bound(block) === bound(other);
}

/** The key of another block that gets all queries for `zone` that would otherwise go to `own`. */
function takerOf(zone: string, own: Key, others: readonly LintedBlock[]): Key | undefined {
  return others
    .flatMap(({ block }) => block.keys)
    .find(
      (key) =>
        key.port === own.port &&
        key.scheme === own.scheme &&
        isBelow(key.zone, own.zone) &&
        isWithin(zone, key.zone),
    );
}

function zonesOf(given: object): readonly string[] {
  const { zones, from } = given as { readonly zones?: unknown; readonly from?: unknown };
  if (Array.isArray(zones)) return zones.filter((zone): zone is string => typeof zone === 'string');
  return typeof from === 'string' && from.endsWith('.') ? [from] : [];
}

export const kubernetesRules: readonly LintRule[] = [
  podMemory,
  wildcardTls,
  leakingNames,
  wholeReverse,
  neverAsked,
];
