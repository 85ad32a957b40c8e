/** A console that reads a server, and the tabs that show it. */
import { existsSync, writeFileSync } from 'node:fs';
import { get, type ClientRequest } from 'node:http';
import { join } from 'node:path';
import { printed, start, type Child } from '../../test/kit/child.ts';
import { elsewhere } from './disturbance.ts';

const TOKEN = 'a-token-that-is-long-enough';
const bin = new URL('../../bin/ndots', import.meta.url).pathname;
/** The views that the tabs show. Each receives a frame twice per second. */
const views = ['now', 'lookups', 'clients', 'names', 'servers', 'findings', 'map'] as const;

/** Ends the benchmark if the page is not built. */
export function needConsole(): void {
  if (existsSync(new URL('../../dist/console/console.js', import.meta.url))) return;
  console.log('skipped: the page is not built (npm run build)');
  process.exit(0);
}

/** Writes the token of the server and of the page to a file. */
export function tokenFile(directory: string): string {
  const file = join(directory, 'token');
  writeFileSync(file, TOKEN);
  return file;
}

export interface ConsoleOptions {
  /** The port of the server's `console` directive on 127.0.0.1. */
  readonly server: number;
  /** The page's port. */
  readonly page: number;
  readonly token: string;
  /** The CPU to use, or null for the remaining time of the measuring client's CPU. */
  readonly cpu: number | null;
}

export class OpenConsole {
  readonly child: Child;
  readonly #page: number;
  readonly #tabs: ClientRequest[] = [];
  frames = 0;

  constructor(child: Child, page: number) {
    this.child = child;
    this.#page = page;
  }

  get #headers(): Record<string, string> {
    return { cookie: `ndots-console-${this.#page}=${TOKEN}` };
  }

  openTabs(count: number): void {
    for (let at = 0; at < count; at++) {
      const path = `/api/live/${views[at % views.length]}`;
      const options = { host: '127.0.0.1', port: this.#page, path, headers: this.#headers };
      const tab = get(options, (response) => {
        response.on('data', () => this.frames++);
        response.on('error', () => undefined);
      });
      this.#tabs.push(tab.on('error', () => undefined));
    }
  }

  async view(name: (typeof views)[number]): Promise<unknown> {
    const url = `http://127.0.0.1:${this.#page}/api/view/${name}`;
    return (await fetch(url, { headers: this.#headers })).json();
  }

  async close(): Promise<void> {
    for (const tab of this.#tabs) tab.destroy();
    await this.child.stop();
  }
}

export async function openConsole(options: ConsoleOptions): Promise<OpenConsole> {
  const { server, page, token, cpu } = options;
  const words = [
    ...[bin, 'console', '--server', `127.0.0.1:${server}`, '--server-token', token, '--no-open'],
    ...['--listen', `127.0.0.1:${page}`, '--token-file', token],
  ];
  const child =
    cpu === null ? start('console', [...elsewhere, ...words]) : start('console', words, { cpu });
  await printed(child, /^http:/m, 60_000);
  return new OpenConsole(child, page);
}
