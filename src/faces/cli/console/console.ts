/** `ndots console`: what happens now, in a browser. */
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { systemClock } from '../../../server/base/clock.ts';
import { Problem } from '../../../server/base/problem.ts';
import { whyFailed } from '../../../server/base/why-failed.ts';
import { LiveModel } from '../../../tools/watch/live-model.ts';
import { PrivateViews } from '../../../tools/watch/view-privacy.ts';
import { addressOwners } from '../capture/capture-names.ts';
import { EXIT, type Command } from '../command.ts';
import { readText } from '../named-file.ts';
import { followNames } from '../live/follow-names.ts';
import { startFeed } from '../live/live-feed.ts';
import { serverTokenOf } from '../live/live-options.ts';
import { untilSignal } from '../until-signal.ts';
import { findConsoleAssets } from './console-assets.ts';
import { parseConsoleOptions, type ConsoleOptions } from './console-options.ts';
import { HandOver } from './hand-over.ts';
import { ConsoleServer } from './console-server.ts';

const TOKEN_BYTES = 24;
/** A shorter token could be guessed. */
const TOKEN_LEAST = 16;
const TOKEN_MOST = 256;

/** The verb `console`. */
export const console: Command = {
  name: 'console',
  async run(words, io) {
    const options = parseConsoleOptions(words);
    const token = tokenOf(options);
    // Rejects a file that cannot be read before anything starts.
    corefileOf(options);
    const assets = findConsoleAssets(fileURLToPath(new URL(pageDirectory(), import.meta.url)));
    const note = (text: string): void => io.err(`ndots console: ${text}\n`);
    const model = new LiveModel({
      limits: options.limits,
      owners: await addressOwners(options, io, note),
    });
    const asked = untilSignal('log');
    const feed = await startFeed(options, model, systemClock, serverTokenOf(options, io.env));
    const views = new PrivateViews(model, options.privacy, token);
    const forget = followNames(options, io, model);
    try {
      const server = await listening({
        ...options,
        token,
        assets,
        clock: systemClock,
        source: () => [feed.name, feed.progress].filter((text) => text !== '').join(', '),
        views,
        privacy: options.privacy,
        handOver: new HandOver(options, model, options.privacy),
        corefile: () => corefileOf(options),
      });
      try {
        io.out(`${server.address}\nCtrl-C ends it.\n`);
        if (options.opens && io.colour) openBrowser(server.address, note);
        // A replay stays on the page when it is over; what cannot be read at all ends it.
        const failed = feed.over.then(() => new Promise<never>(() => undefined));
        await Promise.race([failed, untilAborted(asked)]);
      } finally {
        await server.close();
      }
    } finally {
      feed.stop();
      forget();
    }
    return EXIT.ok;
  },
};

/** Beside the bundled program, or in the build of this checkout. */
function pageDirectory(): string {
  return import.meta.url.includes('/src/') ? '../../../../dist/console' : '../../../console';
}

function tokenOf({ tokenFile }: ConsoleOptions): string {
  if (tokenFile === null) return randomBytes(TOKEN_BYTES).toString('base64url');
  const token = readText(tokenFile, 'token').trim();
  if (token.length < TOKEN_LEAST || token.length > TOKEN_MOST || !/^[\w.~-]+$/.test(token))
    throw new Problem({
      code: 'bad-token',
      text: `${tokenFile} does not hold a token`,
      hint: `A token has ${TOKEN_LEAST} to ${TOKEN_MOST} letters, digits and - . _ ~`,
      remedy: `openssl rand -hex 24 > ${tokenFile}`,
    });
  return token;
}

/** The Corefile as it is now: a person edits it while the page is open. */
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
      remedy: 'Leave --listen out to use a free port.',
      cause: error,
    });
  }
}

function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

function openBrowser(address: string, note: (text: string) => void): void {
  const opener = process.platform === 'darwin' ? 'open' : 'xdg-open';
  const child = spawn(opener, [address], { stdio: 'ignore', detached: true });
  child.on('error', () => note('no browser was opened: open the address above'));
  child.unref();
}
