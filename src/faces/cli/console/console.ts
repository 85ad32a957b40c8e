/** `ndots console`: shows live DNS traffic in a browser. */
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { systemClock } from '../../../server/base/clock.ts';
import { secretGate } from '../../../server/base/http-access.ts';
import { makeLog } from '../../../server/base/log.ts';
import { Problem } from '../../../server/base/problem.ts';
import { FILE_MAX } from '../../../server/base/read-file.ts';
import { whyFailed } from '../../../server/base/why-failed.ts';
import { PrivateViews } from '../../../tools/watch/view-privacy.ts';
import type { AdminChoice } from '../cache/admin-servers.ts';
import { ADMIN_PORT } from '../cache/cache-options.ts';
import { EXIT, type Command } from '../command.ts';
import { delegatedAccess } from '../delegated-access.ts';
import { readText } from '../named-file.ts';
import { startClusters } from '../live/live-clusters.ts';
import type { PacketFeed } from '../live/live-feed.ts';
import type { LiveSources } from '../live/live-options.ts';
import { unencryptedWarning } from '../unencrypted.ts';
import { untilAborted, untilSignal } from '../until-signal.ts';
import { findConsoleAssets } from './console-assets.ts';
import { parseConsoleOptions, type ConsoleOptions } from './console-options.ts';
import { CheckSources } from './check-sources.ts';
import { HandOver } from './hand-over.ts';
import { ConsoleServer } from './console-server.ts';
import { ServerCaches } from './server-caches.ts';

/** Timeout per server for the Cache page, milliseconds. */
const ADMIN_MS = 5000;
const TOKEN_BYTES = 24;
/** Minimum length; shorter tokens could be guessed. */
const TOKEN_LEAST = 16;
const TOKEN_MOST = 256;

export const console: Command = {
  name: 'console',
  async run(words, io) {
    const options = parseConsoleOptions(words);
    const token = options.isDelegated ? null : tokenOf(options);
    // Rejects unreadable files before anything starts.
    corefileOf(options);
    if (options.adminToken !== null) readText(options.adminToken, 'token', FILE_MAX.small);
    const assets = findConsoleAssets(fileURLToPath(new URL(pageDirectory(), import.meta.url)));
    const note = (text: string): void => io.err(`ndots console: ${text}\n`);
    const gate =
      token === null
        ? delegatedAccess(
            options,
            io,
            makeLog((line) => io.err(`${line}\n`)),
          )
        : secretGate(() => token);
    // Client pseudonyms stay the same for as long as a token does.
    const key = token ?? madeToken();
    const asked = untilSignal('log');
    const clusters = await startClusters(options, io, note);
    const { privacy } = options;
    try {
      // Rejects a file that is not a capture before the address is printed.
      await Promise.race([
        Promise.all(clusters.map(({ feed }) => feed.begun)),
        untilAborted(asked),
      ]);
      const server = await listening({
        ...options,
        ...{ gate, token },
        hasOwners: options.cluster || options.manifests !== null,
        assets,
        clock: systemClock,
        clusters: clusters.map(({ name, options: own, model, feed }) => ({
          name,
          source: () =>
            [feed.name, feed.progress, paceText(feed)].filter((text) => text !== '').join(', '),
          views: new PrivateViews(model, privacy, key),
          handOver: new HandOver(own, model, privacy),
          caches: new ServerCaches({
            choice: adminOf(options, own),
            mayFlush: options.mayFlush,
            io,
          }),
        })),
        corefile: () => corefileOf(options),
        grafana: options.grafana ?? '',
        checks: new CheckSources({ servers: options.checks, clock: systemClock }),
      });
      try {
        const warning = unencryptedWarning('queries', options.listen.host, server.port);
        if (warning !== null) note(warning);
        io.out(
          `${server.address}\n${clusters.map(({ feed }) => replayText(feed)).join('')}Ctrl-C ends it.\n`,
        );
        if (options.opens && io.colour) openBrowser(server.address, note);
        // A finished replay stays on the page, whereas unreadable input ends the command.
        const failed = clusters.map(({ feed }) =>
          feed.over.then(() => new Promise<never>(() => undefined)),
        );
        await Promise.race([...failed, untilAborted(asked)]);
      } finally {
        await server.close();
      }
    } finally {
      for (const cluster of clusters) cluster.stop();
    }
    return EXIT.ok;
  },
};

/** The speed of a replay, as the page shows it. Empty for live traffic, or at the end of the files. */
function paceText({ pace, isOver }: PacketFeed): string {
  return pace === null || isOver ? '' : `replayed ${pace.phrase} (--speed changes this)`;
}

/** The speed of a replay, as the terminal shows it. */
function replayText({ name, pace }: PacketFeed): string {
  if (pace === null) return '';
  const other =
    pace.speed === Infinity
      ? '--speed 1 replays it as fast as recorded.'
      : '--speed 10 is ten times as fast, and --speed max shows all of it at once.';
  return `Replaying ${name} ${pace.phrase}. ${other}\n`;
}

/** Found next to the bundled program, or in this checkout's build output. */
function pageDirectory(): string {
  return import.meta.url.includes('/src/') ? '../../../../dist/console' : '../../../console';
}

function madeToken(): string {
  return randomBytes(TOKEN_BYTES).toString('base64url');
}

function tokenOf({ tokenFile }: ConsoleOptions): string {
  if (tokenFile === null) return madeToken();
  const token = readText(tokenFile, 'token').trim();
  if (token.length < TOKEN_LEAST || token.length > TOKEN_MOST || !/^[\w.~-]+$/.test(token))
    throw new Problem({
      code: 'bad-token',
      text: `${tokenFile} does not contain a token`,
      hint: `A token has ${TOKEN_LEAST} to ${TOKEN_MOST} letters, digits and - . _ ~`,
      remedy: `openssl rand -hex 24 > ${tokenFile}`,
    });
  return token;
}

/** Servers for the Cache page, either those given or the cluster's pods. */
function adminOf(
  { admin, adminToken }: ConsoleOptions,
  { replicas }: Pick<LiveSources, 'replicas'>,
): AdminChoice | null {
  if (admin.length === 0 && replicas === null) return null;
  return {
    servers: admin,
    tokenFile: adminToken,
    tokenOption: '--admin-token',
    tls: null,
    cluster: admin.length > 0 || replicas === null ? null : { ...replicas, port: ADMIN_PORT },
    timeoutMs: ADMIN_MS,
  };
}

/** Reads the Corefile on each request, because users edit it while the page is open. */
function corefileOf({ corefile }: ConsoleOptions): {
  readonly name: string;
  readonly text: string;
} {
  if (corefile === null) return { name: '', text: '' };
  return { name: corefile, text: readText(corefile, 'Corefile') };
}

async function listening(parts: Parameters<typeof ConsoleServer.start>[0]): Promise<ConsoleServer> {
  try {
    return await ConsoleServer.start(parts);
  } catch (error) {
    const { host, port } = parts.listen;
    throw new Problem({
      code: 'cannot-listen',
      text: `cannot listen on ${host}:${port}: ${whyFailed(error)}`,
      remedy: 'Omit --listen to use a free port.',
      cause: error,
    });
  }
}

function openBrowser(address: string, note: (text: string) => void): void {
  const opener = process.platform === 'darwin' ? 'open' : 'xdg-open';
  const child = spawn(opener, [address], { stdio: 'ignore', detached: true });
  child.on('error', () => note('no browser was opened; open the address above'));
  child.unref();
}
