/** Live capture and redaction options, shared by all commands that capture. */
import { randomBytes } from 'node:crypto';
import { flag, one, type One, type OptionValue, type Switch } from './option.ts';
import { file, integer, readInteger, text, usage } from './option-values.ts';

/** Comma-separated ports. */
const portsValue: OptionValue<readonly number[]> = {
  placeholder: 'PORT,…',
  read(given, name) {
    const list = given.split(',').map((each) => readInteger(name, each, 1, 65_535));
    if (list.length <= 16) return list;
    throw usage(`${name} takes 16 ports at most`);
  },
};

/** The interface, network namespace and ports for a live capture. */
export const liveSourceOptions: {
  readonly device: One<string>;
  readonly netns: One<string>;
  readonly pid: One<number>;
  readonly ports: One<readonly number[]>;
} = {
  device: one(
    '-i, --interface',
    text('NAME'),
    'capture live on this interface (any: all interfaces)',
  ),
  netns: one(
    '--netns',
    file('PATH'),
    'capture in this network namespace: a name that ip netns lists, or a path',
  ),
  pid: one(
    '--pid',
    integer('PID', 1, 4_194_304),
    'capture in the network namespace of this process',
  ),
  ports: one('--port', portsValue, 'ports of DNS servers (53,5353)'),
};

export const liveNames: readonly string[] = ['device', 'netns', 'pid'].flatMap(
  (key) => liveSourceOptions[key as keyof typeof liveSourceOptions].names,
);

/** The directory of the namespaces that `ip netns` names. */
const NAMED = '/var/run/netns';

/**
 * Path to the selected network namespace, or null for our own.
 * @throws Problem (`usage`)
 */
export function namespaceOf(given: {
  readonly netns: string | null;
  readonly pid: number | null;
}): string | null {
  if (given.netns !== null && given.pid !== null) throw usage('--netns or --pid, not both');
  if (given.pid !== null) return `/proc/${given.pid}/ns/net`;
  return given.netns?.includes('/') === false ? `${NAMED}/${given.netns}` : given.netns;
}

/** Replaces names and addresses with pseudonyms. */
export const redactionOptions: { readonly redact: Switch; readonly redactKey: One<string> } = {
  redact: flag('--redact', 'replace names and addresses with consistent pseudonyms'),
  redactKey: one(
    '--redact-key',
    text('TEXT'),
    'derive pseudonyms from this key, so that they match those of another run',
  ),
};

/** Key for the pseudonyms, random by default. Null for no redaction. */
export function redactionKey(given: {
  readonly redact: boolean;
  readonly redactKey: string | null;
}): string | null {
  return given.redactKey ?? (given.redact ? randomBytes(16).toString('hex') : null);
}
