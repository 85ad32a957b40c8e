/** ExternalName Services that point to a short name, which only pods with a search path can resolve. */
import { addressTypes } from '../../../server/wire/iana.ts';
import type { Observations } from '../observe/observations.ts';
import type { FaultyName } from '../observe/reply-faults.ts';
import { endsInTop } from '../observe/registered-names.ts';
import { listed, sentence, share } from '../texts.ts';
import { MIN_CASES } from '../thresholds/evidence.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';

/** SERVICE.NAMESPACE.svc.DOMAIN. */
const SERVICE_NAME = /^([^.]+)\.([^.]+)\.svc\.(.+)$/;

interface ShortTarget {
  readonly name: string;
  /** The target of its alias, with a final dot. */
  readonly target: string;
  /** The Service name that was probably meant. */
  readonly whole: string;
  readonly count: number;
  /** True if the capture shows more than the form of the target. */
  readonly isSure: boolean;
}

export const shortTarget: FindingKind = {
  code: 'ND4032',
  title: 'A CNAME record points to a name that does not exist (dangling CNAME)',
  name: 'an alias whose target does not exist',
  inCapture(observed, claims) {
    const { replyFaults, names } = observed;
    if (replyFaults.read === 0) return unknown('the capture contains no complete reply');
    const short = shortTargets(observed);
    const count = short.reduce((sum, each) => sum + each.count, 0);
    const [first] = short;
    if (first === undefined || count < MIN_CASES)
      return excluded('no alias of a Service leads to a part of a Service’s name');
    for (const { name, target } of short) claims.names.add(name).add(target);
    const own = new Set(short.map(({ name }) => name));
    const targets = [...new Set(short.map(({ target }) => target.slice(0, -1)))];
    const wholes = [...new Set(short.map(({ whole }) => whole))];
    const found = wholes.filter((whole) =>
      addressTypes.some((type) => (names.get(`${whole}.`, type)?.outcomes.found ?? 0) > 0),
    );
    const denied = short.filter(({ target }) =>
      addressTypes.some((type) => (names.get(target, type)?.outcomes.nxdomain ?? 0) > 0),
    );
    const [, service = '', namespace = ''] = SERVICE_NAME.exec(first.name)!;
    return {
      title: 'An ExternalName Service points to a name that is not fully qualified',
      subject: first.name,
      severity: 'critical',
      confidence: short.every(({ isSure }) => isSure) ? 0.95 : 0.88,
      seen: [
        sentence(
          `${share(count, observed.total.asked)} queries got a CNAME record without an address: ${listed(short.map(({ name, target }) => `${name} points to ${target.slice(0, -1)}`))}`,
        ),
        denied.length > 0 &&
          sentence(
            `The DNS pod queries ${listed(denied.map(({ target }) => target))} at its upstream as written, and gets NXDOMAIN`,
          ),
        found.length > 0 &&
          `${listed(found)} ${found.length === 1 ? 'resolves' : 'resolve'} in this capture.`,
      ],
      why: `A CNAME record contains a full name, and no search path applies to it. ${listed(targets)} looks like the short name of a Service, which only a pod’s own resolver completes. The DNS pod looks it up as an external name, which does not exist, and returns the alias alone.`,
      fix: [
        sentence(`Set spec.externalName of ${service} in namespace ${namespace} to ${first.whole}`),
        'If another host was meant, write its full name, including its domain.',
      ],
      prove: `run kubectl -n ${namespace} get service ${service} -o jsonpath={.spec.externalName}, then ndots query ${first.whole}`,
      disproved: 'spec.externalName is a full name (then its zone has lost the name)',
      hits: count,
      exchanges: [...(replyFaults.kinds.get('endless')?.samples ?? [])]
        .concat(replyFaults.kinds.get('dangling')?.samples ?? [])
        .filter(({ name }) => own.has(name)),
    };
  },
};

/** Services whose alias leads to a short name and that never have an address. */
function shortTargets(observed: Observations): readonly ShortTarget[] {
  const { replyFaults } = observed;
  const all: readonly FaultyName[] = [
    ...(replyFaults.kinds.get('endless')?.names.list ?? []),
    ...(replyFaults.kinds.get('dangling')?.names.list ?? []),
    ...replyFaults.failingTargets.list,
  ];
  return [...Map.groupBy(all, ({ name }) => name)].flatMap(([name, faulty]) => {
    const { target } = faulty.find((each) => each.target !== '') ?? faulty[0]!;
    const [, , namespace = '', domain] = SERVICE_NAME.exec(name) ?? [];
    const labels = target.slice(0, -1).split('.');
    if (domain === undefined || target === '' || endsInTop(target)) return [];
    const isService = target.endsWith('.svc.');
    if (!isService && labels.length > 2) return [];
    const count = faulty.reduce((sum, each) => sum + each.count, 0);
    const answered = addressTypes.reduce(
      (sum, type) => sum + (observed.names.get(name, type)?.outcomes.found ?? 0),
      0,
    );
    // An alias counts as found.
    if (answered > count) return [];
    const stem = isService ? labels.slice(0, -1) : labels;
    const whole = `${stem.length === 1 ? `${stem[0]!}.NAMESPACE` : stem.join('.')}.svc.${domain}`;
    const isNamespace =
      labels[1] === namespace ||
      observed.names.list.some((each) => each.name.endsWith(`.${labels[1]!}.svc.${domain}`));
    const isSure = isService || labels.length === 1 || isNamespace;
    return [{ name, target, whole: whole.slice(0, -1), count, isSure }];
  });
}
