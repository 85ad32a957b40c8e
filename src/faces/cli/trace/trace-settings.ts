/** Gathers the files needed for a trace from the command line, this machine or a pod's manifest. */
import { hostname, networkInterfaces } from 'node:os';
import { readFileText } from '../../../server/base/read-file.ts';
import type { AddressFamily, Host, Settings } from '../../../tools/resolver/client.ts';
import { withNdots } from '../../../tools/resolver/resolv-conf.ts';
import type { Io } from '../command.ts';
import { readText } from '../named-file.ts';
import { imageAddresses, imageHostname, imageHosts } from './image-settings.ts';
import { resolvConfOfPod, type PodSettings } from './trace-pod.ts';
import type { TraceVerbOptions } from './trace-options.ts';

const largestFile = 4 << 20;

/** Resolver variables that the trace inherits from the environment. */
const inherited = ['LOCALDOMAIN', 'RES_OPTIONS', 'HOSTALIASES', 'GODEBUG'];

/** The settings for a lookup and their sources. */
export interface GatheredSettings {
  readonly settings: Settings;
  /** The origin of resolv.conf, and notes about it. */
  readonly notes: readonly string[];
  /** The pod that the settings belong to, or null if they do not belong to one. */
  readonly from: string | null;
  /** The assumption about the pod's node, or null if there is none. */
  readonly assumed: string | null;
}

/**
 * Reads the files that determine a lookup.
 * @throws Problem if a file specified by the user cannot be read
 */
export async function gatherSettings(options: TraceVerbOptions, io: Io): Promise<GatheredSettings> {
  const notes: string[] = [];
  let from: string | null = null;
  let assumed: string | null = null;
  // --manifests selects a pod in its cluster rather than this machine.
  const ofPod =
    options.resolvConf === null &&
    (options.from === null ? options.manifests !== null : options.from !== 'host');
  const own = !ofPod && (options.from === 'host' || options.resolvConf === null);
  let resolvConf: string | null;
  if (options.resolvConf !== null)
    resolvConf = readText(options.resolvConf, 'resolv.conf', largestFile);
  else if (ofPod) {
    // If nothing is sent, the node's settings do not have to match a particular machine.
    const { nodeResolvConf } = options;
    const node =
      nodeResolvConf !== null
        ? readText(nodeResolvConf, 'resolv.conf', largestFile)
        : sendsNothing(options)
          ? ''
          : (readIfThere('/etc/resolv.conf') ?? '');
    const pod = await resolvConfOfPod(options, node, io);
    resolvConf = pod.text;
    notes.push(...pod.warnings);
    from = pod.from;
    if (nodeResolvConf === null) assumed = assumedOf(pod);
  } else resolvConf = readIfThere('/etc/resolv.conf');
  if (options.server !== null) resolvConf = withServer(resolvConf, options.server);
  if (options.ndots !== null) resolvConf = withNdots(resolvConf, options.ndots);
  const env: Record<string, string | undefined> = {};
  for (const key of inherited) if (io.env[key] !== undefined) env[key] = io.env[key];
  Object.assign(env, options.env);
  const aliases = options.hostAliases ?? env['HOSTALIASES'] ?? null;
  return {
    settings: {
      resolvConf,
      nsswitch:
        options.nsswitch !== null
          ? readText(options.nsswitch, 'nsswitch.conf', largestFile)
          : own
            ? readIfThere('/etc/nsswitch.conf')
            : null,
      hosts:
        options.hosts !== null
          ? readText(options.hosts, 'hosts file', largestFile)
          : own
            ? readIfThere('/etc/hosts')
            : imageHosts,
      hostAliases: aliases === null || aliases === '' ? null : readIfThere(aliases),
      env,
      host: hostOf(options, own),
    },
    notes,
    from,
    assumed,
  };
}

/** Our assumption about the node's resolv.conf, which only the node has. */
function assumedOf({ nodeSearch }: PodSettings): string | null {
  if (nodeSearch === null) return null;
  return nodeSearch.length === 0
    ? "the node's search domains, each of which adds queries, are unknown and left out (--node-resolv-conf FILE)"
    : `this machine's search domains are used instead of the node's: ${nodeSearch.join(' ')} (--node-resolv-conf FILE)`;
}

/** True if the lookup is only planned and no queries are sent. */
export function sendsNothing({ plan, answers, corefile, manifests }: TraceVerbOptions): boolean {
  return plan || answers !== null || corefile !== null || manifests !== null;
}

function hostOf(options: TraceVerbOptions, own: boolean): Host {
  const interfaces = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
  const internal = interfaces.filter((one) => one.internal).map((one) => one.address);
  const external = interfaces.filter((one) => !one.internal).map((one) => one.address);
  const addresses = options.hostAddresses ?? (own ? external : imageAddresses);
  // If a list of addresses has no IPv6 ones, IPv6 is disabled. Otherwise, there would be a link-local address.
  const known = options.hostAddresses ?? (own ? internal : ['127.0.0.1', '::1']);
  const without6 = known.length > 0 && known.every((address) => !address.includes(':'));
  const loopback: AddressFamily[] = without6 ? [4] : [4, 6];
  return { hostname: options.hostname ?? (own ? hostname() : imageHostname), addresses, loopback };
}

function readIfThere(path: string): string | null {
  try {
    return readFileText(path, largestFile);
  } catch {
    return null;
  }
}

/** Replaces the file's name servers with a single one. */
function withServer(text: string | null, server: string): string {
  const kept = (text ?? '').split('\n').filter((line) => !/^\s*nameserver\b/.test(line));
  return [`nameserver ${server}`, ...kept].join('\n');
}
