/**
 * Decides how to change a pod's DNS configuration, based on annotations on the pod or its namespace, or on measured
 * advice.
 */
import { child, children, text, textMap, type JsonObject } from '../../server/base/json-object.ts';
import { controllerOf } from '../../tools/pods/workload-name.ts';

/** Annotations on a namespace or on a pod, usually in the workload's template. */
export const annotations = {
  /** `off` disables all changes. */
  dns: 'ndots.dev/dns',
  /** A number for `options ndots`. */
  ndots: 'ndots.dev/dns-ndots',
  /** Options in resolv.conf syntax, for example `timeout:1,attempts:3,single-request-reopen`. */
  options: 'ndots.dev/dns-options',
  /** Written by the webhook, with the change or advice and its reason. */
  advice: 'ndots.dev/dns-advice',
} as const;

/** A resolv.conf option as in a pod's `dnsConfig`. */
export interface DnsOption {
  readonly name: string;
  readonly value?: string;
}

/**
 * A DNS configuration and the reason for it. `mistakes` are reported to the pod's creator, although the pod is still
 * admitted.
 */
export interface DnsAdvice {
  readonly options: readonly DnsOption[];
  /** `annotation`, `namespace shop`, `advice for shop/web` or `default`, or empty if nothing changes. */
  readonly because: string;
  readonly mistakes: readonly string[];
}

/** The possible sources of a configuration, other than the pod itself. */
export interface AdviceSources {
  /** Annotations of the pod's namespace. */
  readonly namespace: Readonly<Record<string, string>>;
  readonly namespaceName: string;
  /** Measured advice: `namespace/workload` → ndots. */
  readonly measured: ReadonlyMap<string, number>;
  /** The value for all other pods, or null to leave them unchanged. */
  readonly ndots: number | null;
}

/** glibc accepts at most 15. */
const NDOTS_MAX = 15;
/** Names are words, and values are numbers or words, because the kubelet copies them into resolv.conf unchanged. */
const optionPattern = /^([a-z][a-z0-9-]{0,31})(?::([A-Za-z0-9_.-]{1,63}))?$/;
const OPTIONS_MAX = 32;

/**
 * Returns the changes for a pod. Options already in its `dnsConfig` are left unchanged, and pods that do not use
 * cluster DNS are ignored.
 * @param pod a Pod object
 */
export function adviseDns(pod: JsonObject, sources: AdviceSources): DnsAdvice {
  const nothing: DnsAdvice = { options: [], because: '', mistakes: [] };
  const spec = child(pod, 'spec');
  const own = textMap(child(pod, 'metadata'), 'annotations');
  if ((own[annotations.dns] ?? sources.namespace[annotations.dns]) === 'off') return nothing;
  const policy = text(spec, 'dnsPolicy') || 'ClusterFirst';
  const usesCluster =
    policy === 'ClusterFirstWithHostNet' ||
    (policy === 'ClusterFirst' && spec['hostNetwork'] !== true);
  if (!usesCluster) return nothing;
  const mistakes: string[] = [];
  const asked = askedFor(pod, own, sources, mistakes);
  const present = new Set(
    children(child(spec, 'dnsConfig'), 'options').map((option) => text(option, 'name')),
  );
  const options = asked.options.filter(({ name }) => !present.has(name));
  return { options, because: options.length === 0 ? '' : asked.because, mistakes };
}

/** Returns the first source that requests a change. */
function askedFor(
  pod: JsonObject,
  own: Readonly<Record<string, string>>,
  { namespace, namespaceName, measured, ndots }: AdviceSources,
  mistakes: string[],
): Pick<DnsAdvice, 'options' | 'because'> {
  const ofPod = optionsOf(own, mistakes);
  if (ofPod.length > 0) return { options: ofPod, because: 'annotation' };
  const ofNamespace = mistakes.length > 0 ? [] : optionsOf(namespace, mistakes);
  if (ofNamespace.length > 0)
    return { options: ofNamespace, because: `namespace ${namespaceName}` };
  // The author of an invalid annotation wanted something other than the default.
  if (mistakes.length > 0) return { options: [], because: '' };
  const workload = `${namespaceName}/${workloadOf(pod)}`;
  const advised = measured.get(workload);
  if (advised !== undefined)
    return { options: [ndotsOption(advised)], because: `advice for ${workload}` };
  if (ndots !== null) return { options: [ndotsOption(ndots)], because: 'default' };
  return { options: [], because: '' };
}

const ndotsOption = (ndots: number): DnsOption => ({ name: 'ndots', value: String(ndots) });

function optionsOf(
  said: Readonly<Record<string, string>>,
  mistakes: string[],
): readonly DnsOption[] {
  const options = new Map<string, DnsOption>();
  const listed = said[annotations.options];
  for (const word of listed?.split(',').map((one) => one.trim()) ?? []) {
    if (word === '') continue;
    const [, name, value] = optionPattern.exec(word) ?? [];
    if (name === undefined || options.size >= OPTIONS_MAX)
      mistakes.push(`${annotations.options}: "${word.slice(0, 64)}" is not a resolv.conf option`);
    else options.set(name, value === undefined ? { name } : { name, value });
  }
  const ndots = said[annotations.ndots];
  if (ndots !== undefined) {
    const read = readNdots(ndots);
    if (read === null)
      mistakes.push(
        `${annotations.ndots}: "${ndots.slice(0, 64)}" is not a number from 0 to ${NDOTS_MAX}`,
      );
    else options.set('ndots', ndotsOption(read));
  }
  return [...options.values()];
}

/** Parses a number of dots; null if malformed. */
export function readNdots(given: string): number | null {
  return /^\d{1,2}$/.test(given) && Number(given) <= NDOTS_MAX ? Number(given) : null;
}

/** The workload that a pod belongs to, which is the Deployment rather than the intermediate ReplicaSet. */
function workloadOf(pod: JsonObject): string {
  const metadata = child(pod, 'metadata');
  const { name } = controllerOf(metadata);
  return name || text(metadata, 'name') || text(metadata, 'generateName').replace(/-$/, '');
}
