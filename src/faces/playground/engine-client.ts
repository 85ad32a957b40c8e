/** Runs each engine in a separate worker, which is started on first use. */
import { signal, type Signal } from '@preact/signals-core';
import type {
  EngineName,
  EngineReply,
  EngineRequest,
  Engines,
  ShownProblem,
} from './engine-messages.ts';

export type EngineState<N extends EngineName> =
  | { readonly kind: 'idle' }
  | { readonly kind: 'running'; readonly progress: string }
  | { readonly kind: 'done'; readonly result: Engines[N]['result'] }
  | { readonly kind: 'failed'; readonly problems: readonly ShownProblem[] };

/** The Trusted Types interface, needed for the worker's address under the page's content security policy. */
interface ScriptUrls {
  createPolicy(
    name: string,
    rules: { createScriptURL(url: string): string },
  ): { createScriptURL(url: string): unknown };
}

const WORKER = 'engine-worker.js';

const workerUrl: string = (() => {
  const { trustedTypes } = globalThis as { trustedTypes?: ScriptUrls };
  const url = new URL(WORKER, document.baseURI).href;
  if (trustedTypes === undefined) return url;
  const policy = trustedTypes.createPolicy('ndots-engine', {
    createScriptURL(given) {
      if (given !== url) throw new TypeError('only the engines are loaded');
      return given;
    },
  });
  return policy.createScriptURL(url) as string;
})();

/**
 * Runs one engine. While it runs, only the newest input is queued, because results for older ones would be out of date.
 */
export class EngineClient<N extends EngineName> {
  readonly state: Signal<EngineState<N>> = signal({ kind: 'idle' });
  /** The latest result, which stays while the engine runs again. */
  readonly result: Signal<Engines[N]['result'] | null> = signal(null);
  readonly #engine: N;
  #worker: Worker | null = null;
  #id = 0;
  #running = false;
  #waiting: Engines[N]['input'] | null = null;

  constructor(engine: N) {
    this.#engine = engine;
  }

  run(input: Engines[N]['input']): void {
    if (this.#running) {
      this.#waiting = input;
      return;
    }
    this.#running = true;
    this.state.value = {
      kind: 'running',
      progress: this.#worker === null ? 'loading the engine' : '',
    };
    const request: EngineRequest<N> = { id: ++this.#id, engine: this.#engine, input };
    this.#start().postMessage(request);
  }

  /** Cancels the current run and drops its results. */
  stop(): void {
    this.#worker?.terminate();
    this.#worker = null;
    this.#running = false;
    this.#waiting = null;
    this.result.value = null;
    this.state.value = { kind: 'idle' };
  }

  #start(): Worker {
    if (this.#worker !== null) return this.#worker;
    const worker = new Worker(workerUrl, { type: 'module', name: this.#engine });
    worker.onmessage = ({ data }: MessageEvent<EngineReply<N>>) => this.#take(data);
    worker.onerror = (event) => {
      event.preventDefault();
      this.#worker?.terminate();
      this.#worker = null;
      this.#end({
        kind: 'failed',
        problems: [
          {
            code: 'engine',
            place: null,
            ...(event.message
              ? {
                  text: `The engine failed: ${event.message}`,
                  hint: null,
                  remedy: 'This is a bug in ndots. Please report it with this input.',
                }
              : {
                  text: 'The engine could not be loaded.',
                  hint: 'This page’s files were moved, or it was opened without a web server.',
                  remedy: 'Serve the directory over HTTP, as in: npx serve release/playground',
                }),
          },
        ],
      });
    };
    this.#worker = worker;
    return worker;
  }

  #take(reply: EngineReply<N>): void {
    if (reply.id !== this.#id) return;
    if (reply.kind === 'progress') this.state.value = { kind: 'running', progress: reply.text };
    else if (reply.kind === 'problems') this.#end({ kind: 'failed', problems: reply.problems });
    else {
      this.result.value = reply.result;
      this.#end({ kind: 'done', result: reply.result });
    }
  }

  #end(state: EngineState<N>): void {
    this.#running = false;
    const next = this.#waiting;
    this.#waiting = null;
    if (state.kind === 'failed') this.result.value = null;
    if (next === null) this.state.value = state;
    else this.run(next);
  }
}
