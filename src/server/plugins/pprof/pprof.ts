/** `pprof`: serves profiles of the running server over HTTP. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { builtins } from '../../base/builtins.ts';
import { sleep } from '../../base/clock.ts';
import { FILE_MAX, readFileText } from '../../base/read-file.ts';
import { optional } from '../../corefile/positions.ts';
import { custom } from '../../corefile/properties.ts';
import { directive } from '../../corefile/syntax.ts';
import { hostPort } from '../../corefile/word-values.ts';
import type { ControlContext } from '../../engine/contract/control-context.ts';
import { answerText } from '../../base/http-answer.ts';
import { definePlugin, type Plugin } from '../../engine/contract/plugin.ts';
import { beginProfile, type ProfileKind, type ThreadProfile } from './thread-profile.ts';

const address = hostPort('ADDRESS');

const syntax = directive({
  name: 'pprof',
  summary: 'serves profiles of the running server over HTTP',
  repeat: 'once',
  args: {
    address: optional(address, {
      default: { host: 'localhost', port: 6053 },
      help: 'listen address of `/debug/pprof`',
    }),
  },
  properties: {
    block: custom(
      'block',
      '[RATE]',
      (words, refuse) => {
        const [rate, extra] = words;
        if (extra !== undefined) return refuse('Wrong argument count or unexpected line ending');
        if (rate !== undefined && !/^[+-]?\d+$/.test(rate.text)) {
          return refuse(`property 'block' invalid integer value '${rate.text}'`, rate.place);
        }
        return true;
      },
      { help: 'accepted for compatibility, but has no effect' },
    ),
  },
});

/** Sent from the control part to every worker, and back. */
interface Wish {
  readonly id: number;
  readonly kind: ProfileKind;
  readonly ms: number;
}
/** `found` is null if a worker is only announcing itself. */
interface Brought {
  readonly id: number;
  readonly found: ThreadProfile | null;
}

/** Default duration of a profile in seconds. */
const SECONDS = 30;
/** Maximum duration of a profile, in seconds. */
const SECONDS_MAX = 120;
/** Number of milliseconds after a profile ends until a worker without a result is skipped. */
const LATE_MS = 5000;

/** Profiles all threads. The control thread is profiled here, and each worker in its own thread. */
export const pprof: Plugin = definePlugin({
  syntax,
  link: false,
  operational: true,
  control(options, context) {
    const at = address.print(options.address);
    const profiles = new Profiles(context);
    for (const path of ['/debug/pprof', '/debug/pprof/'])
      context.http(at, path, (_request, response) => answerText(response, 200, index));
    context.http(at, '/debug/pprof/cmdline', (_request, response) =>
      answerText(response, 200, commandLine()),
    );
    for (const kind of ['profile', 'heap'] as const) {
      context.http(at, `/debug/pprof/${kind}`, (request, response) => {
        void profiles.serve(kind, request, response);
      });
    }
  },
  setup(_options, context, next) {
    context.onMessage((message) => {
      const { id, kind, ms } = message as Wish;
      void beginProfile(kind).then((end) => {
        context.clock.after(ms, () => {
          void end().then((found) => context.post({ id, found } satisfies Brought));
        });
      });
    });
    context.onStart(() => context.post({ id: 0, found: null } satisfies Brought));
    return next;
  },
});

const index = `/debug/pprof/

profile?seconds=N   CPU time of all threads, for N seconds (default ${SECONDS}, at most ${SECONDS_MAX})
heap?seconds=N      memory that was allocated within N seconds and is still in use
cmdline             the command line

go tool pprof http://ADDRESS/debug/pprof/profile?seconds=10
For the browser's DevTools, add &thread=control, &thread=worker-0, &thread=worker-1 ...
`;

/** Removes the zero bytes that the runtime writes after its title. */
function commandLine(): string {
  const words = readFileText('/proc/self/cmdline', FILE_MAX.small).split('\0');
  return words.filter((word) => word !== '').join('\0');
}

class Profiles {
  readonly #context: ControlContext;
  readonly #workers = new Set<number>();
  #busy = false;
  #wishes = 0;
  #brought = new Map<string, ThreadProfile>();

  constructor(context: ControlContext) {
    this.#context = context;
    context.onMessage((message, worker) => {
      const { id, found } = message as Brought;
      this.#workers.add(worker);
      if (found !== null && id === this.#wishes) this.#brought.set(nameOf(worker), found);
    });
  }

  async serve(
    kind: ProfileKind,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const words = new URL(request.url ?? '/', 'http://localhost').searchParams;
    const seconds = Number(words.get('seconds') ?? SECONDS);
    if (!(seconds > 0 && seconds <= SECONDS_MAX)) {
      answerText(response, 400, `seconds must be a number up to ${SECONDS_MAX}\n`);
      return;
    }
    if (this.#busy) {
      answerText(response, 503, 'another profile is running; try again later\n');
      return;
    }
    this.#busy = true;
    // Nothing is sent while the profile is in progress.
    request.socket.setTimeout(0);
    try {
      const beganMs = Date.now();
      const threads = await this.#take(kind, seconds * 1000);
      const thread = words.get('thread');
      if (thread !== null) {
        sendThread(kind, thread, threads, response);
        return;
      }
      const { pprofFile } = await import('./pprof-file.ts');
      const bytes = pprofFile(kind, threads, beganMs, seconds * 1000);
      send(response, `${kind}.pb.gz`, builtins.zlib().gzipSync(bytes));
    } catch (error) {
      this.#context.log.error(`profile: ${String(error)}`);
      if (!response.headersSent) answerText(response, 500, 'the profile failed\n');
    } finally {
      this.#busy = false;
    }
  }

  async #take(kind: ProfileKind, ms: number): Promise<ReadonlyMap<string, ThreadProfile>> {
    const { clock } = this.#context;
    this.#brought = new Map();
    this.#context.publish({ id: ++this.#wishes, kind, ms } satisfies Wish);
    const end = await beginProfile(kind);
    await sleep(clock, ms);
    this.#brought.set('control', await end());
    const until = clock.now() + LATE_MS;
    const missing = (): number[] =>
      [...this.#workers].filter((worker) => !this.#brought.has(nameOf(worker)));
    while (missing().length > 0 && clock.now() < until) await sleep(clock, 20);
    // Workers that did not answer have been replaced.
    for (const worker of missing()) this.#workers.delete(worker);
    return this.#brought;
  }
}

function nameOf(worker: number): string {
  return `worker-${worker}`;
}

function sendThread(
  kind: ProfileKind,
  thread: string,
  threads: ReadonlyMap<string, ThreadProfile>,
  response: ServerResponse,
): void {
  const found = threads.get(thread);
  if (found === undefined) {
    answerText(
      response,
      404,
      `no thread ${thread}; available: ${[...threads.keys()].join(', ')}\n`,
    );
    return;
  }
  const name = `${thread}.${kind === 'profile' ? 'cpuprofile' : 'heapprofile'}`;
  send(response, name, Buffer.from(JSON.stringify(found.profile)));
}

function send(response: ServerResponse, name: string, bytes: Uint8Array): void {
  response
    .writeHead(200, {
      'content-type': 'application/octet-stream',
      'content-disposition': `attachment; filename="${name}"`,
      'content-length': bytes.length,
      'x-content-type-options': 'nosniff',
    })
    .end(bytes);
}
