/** Options that the live views share: servers, speed, window and memory. */
import { readSecret } from '../../../server/base/secret-file.ts';
import { liveLimits, type LiveLimits } from '../../../tools/watch/live-limits.ts';
import type { Io } from '../command.ts';
import { sourcesOf, type TrafficSources } from '../capture/traffic-options.ts';
import { many, one, type Many, type One, type OptionValue, type OptionValues } from '../option.ts';
import { duration, file, integer, listenAddress, usage } from '../option-values.ts';
import type { FollowedServer } from './server-stream.ts';

const MIB = 1024 * 1024;
/** The port of the directive `console`. */
const CONSOLE_PORT = 9155;
/** The token of servers, where no file is given. */
const TOKEN_VARIABLE = 'NDOTS_SERVER_TOKEN';

/** A speed relative to the recorded time: `10`, `0.5`, `10x`, `max`. */
const speedValue: OptionValue<number> = {
  placeholder: 'N|max',
  offers: { words: ['1', '10', '100', 'max'] },
  read(given, name) {
    if (given === 'max') return Infinity;
    const speed = /^\d{1,6}(?:\.\d{1,3})?x?$/.test(given) ? Number.parseFloat(given) : 0;
    if (speed >= 0.01 && speed <= 100_000) return speed;
    throw usage(`${name} takes a number from 0.01 to 100000, or max, not "${given}"`);
  },
};

/** Servers that are followed. */
export const serverOptions: {
  readonly servers: Many<FollowedServer>;
  readonly serverToken: One<string>;
} = {
  servers: many(
    '--server',
    { ...listenAddress(CONSOLE_PORT), placeholder: 'IP[:PORT]' },
    'an ndots server with the directive console; may be repeated',
  ),
  serverToken: one(
    '--server-token',
    file(),
    `read the token of the servers from FILE (or from the variable ${TOKEN_VARIABLE})`,
  ),
};

/** The speed of a replay. */
export const speedOption: { readonly speed: One<number> } = {
  speed: one('--speed', speedValue, 'replay files N times as fast (1)'),
};

/** The window and the memory of single lookups. */
export const windowOptions: { readonly window: One<number>; readonly memory: One<number> } = {
  window: one(
    '--window',
    duration(liveLimits.windowMs.min, liveLimits.windowMs.max),
    'keep single lookups for this long (10m)',
  ),
  memory: one(
    '--memory',
    integer('MIB', 1, 4096),
    `memory limit for single lookups (${liveLimits.detailBytes.default / MIB})`,
  ),
};

/** The sources of a live view. */
export interface LiveSources extends TrafficSources {
  readonly servers: readonly FollowedServer[];
  readonly serverToken: string | null;
}

type SourceValues = Parameters<typeof sourcesOf>[0] & OptionValues<typeof serverOptions>;

/** The sources that are meant; without any, all interfaces of this machine. @throws Problem (`usage`) */
export function liveSourcesOf(values: SourceValues, files: readonly string[]): LiveSources {
  const { servers, serverToken, device, netns, pid, dnstap } = values;
  const isCapture = [device, netns, pid, dnstap].some((each) => each !== null);
  if (servers.length > 0 && files.length > 0)
    throw usage('either files or servers, not both', 'Files are read without --server');
  if (servers.length === 0 && serverToken !== null)
    throw usage('--server-token is for --server', 'As in: --server 127.0.0.1:9155');
  const followed = { servers, serverToken };
  if (servers.length > 0 && !isCapture)
    return { files: [], device: null, netns: null, dnstap: null, ports: values.ports, ...followed };
  const isBare = !isCapture && files.length === 0;
  return { ...sourcesOf(isBare ? { ...values, device: 'any' } : values, files), ...followed };
}

/** The limits that were given. */
export function limitsOf({
  window,
  memory,
}: OptionValues<typeof windowOptions>): Partial<LiveLimits> {
  return {
    ...(window !== null && { windowMs: window }),
    ...(memory !== null && { detailBytes: memory * MIB }),
  };
}

/** The token of the followed servers. @throws Problem */
export function serverTokenOf({ servers, serverToken }: LiveSources, env: Io['env']): string {
  if (servers.length === 0) return '';
  if (serverToken !== null) return readSecret(serverToken);
  const given = env[TOKEN_VARIABLE] ?? '';
  if (given !== '') return given;
  throw usage(
    'the servers require a token',
    `--server-token FILE, or ${TOKEN_VARIABLE}: the token is in the file of token_file, or in the log of the server`,
  );
}
