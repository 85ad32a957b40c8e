/** Faults that the fake API server can inject. */
import type { ServerResponse } from 'node:http';
import type { Clock } from '../../../src/server/base/clock.ts';
import { failureStatus } from './status.ts';

/** A fault in how a request is handled. It replaces the reply or precedes it. */
export type Fault =
  /** Reply with this status. By default, the body is a Status object. */
  | {
      readonly kind: 'status';
      readonly status: number;
      readonly headers?: Readonly<Record<string, string>>;
      readonly body?: string;
      readonly reason?: string;
    }
  /** Cut the connection, either at once or after this many bytes of the body. */
  | { readonly kind: 'drop'; readonly afterBytes?: number }
  /** Accept the request and never answer. */
  | { readonly kind: 'hang' }
  /** Answer after a delay. */
  | { readonly kind: 'slow'; readonly delayMs: number }
  /** Send the first bytes of the correct body and then nothing. */
  | { readonly kind: 'stall'; readonly afterBytes: number }
  /** Send the correct body one byte at a time, with a pause before each. */
  | { readonly kind: 'drip'; readonly everyMs: number }
  /** Never finish the reply: endless further pages, one endless page, or an endless stream of watch events. */
  | { readonly kind: 'endless'; readonly of: 'pages' | 'items' | 'events' }
  | { readonly kind: 'garbage' };

/** The requests that a fault applies to. */
export interface FaultRule {
  /** The resource's plural, e.g. `services`, or `version`. If omitted, the fault affects all requests. */
  readonly resource?: string;
  readonly verb?: Verb;
  /** The number of requests affected. If omitted, the fault stays until it is removed. */
  readonly times?: number;
  readonly fault: Fault;
}

/** A request's action in RBAC terms. */
export type Verb = 'list' | 'watch' | 'get' | 'create' | 'update' | 'patch' | 'delete';

/** The active faults, in order of precedence. */
export class Faults {
  #rules: { rule: FaultRule; left: number }[] = [];

  /** Adds a rule. The returned function removes it. */
  add(rule: FaultRule): () => void {
    const entry = { rule, left: rule.times ?? Infinity };
    this.#rules.push(entry);
    return () => {
      this.#rules = this.#rules.filter((other) => other !== entry);
    };
  }

  clear(): void {
    this.#rules = [];
  }

  /** Returns the fault for this request and decrements its count. */
  take(resource: string, verb: Verb): Fault | null {
    for (const entry of this.#rules) {
      const { rule } = entry;
      if (rule.resource !== undefined && rule.resource !== resource) continue;
      if (rule.verb !== undefined && rule.verb !== verb) continue;
      if (--entry.left <= 0) this.#rules = this.#rules.filter((other) => other !== entry);
      return rule.fault;
    }
    return null;
  }
}

/** Applies a fault to a reply. Returns true if the request still has to be answered. */
export async function strike(fault: Fault, reply: ServerResponse, clock: Clock): Promise<boolean> {
  switch (fault.kind) {
    case 'status': {
      const message = fault.reason ?? `injected ${fault.status}`;
      const body = fault.body ?? JSON.stringify(failureStatus(fault.status, message));
      reply.writeHead(fault.status, { 'content-type': 'application/json', ...fault.headers });
      reply.end(body);
      return false;
    }
    case 'drop':
      if (fault.afterBytes !== undefined) {
        cutBody(reply, fault.afterBytes, () => reply.destroy());
        return true;
      }
      reply.destroy();
      return false;
    case 'hang':
      return false;
    case 'slow':
      await new Promise<void>((resolve) => clock.after(fault.delayMs, resolve));
      return true;
    case 'stall':
      cutBody(reply, fault.afterBytes, () => {});
      return true;
    case 'drip':
      dripBody(reply, fault.everyMs, clock);
      return true;
    case 'endless':
      answerForever(fault.of, reply);
      return false;
    case 'garbage':
      reply.writeHead(200, { 'content-type': 'text/html' });
      reply.end('<html>hello from a proxy</html>\n');
      return false;
  }
}

let pages = 0;

function answerForever(of: 'pages' | 'items' | 'events', reply: ServerResponse): void {
  reply.writeHead(200, { 'content-type': 'application/json' });
  const head = (next: string): string =>
    `{"kind":"List","metadata":{"resourceVersion":"1","continue":"${next}"},"items":[`;
  if (of === 'pages') {
    reply.end(`${head(String(++pages))}]}`);
    return;
  }
  if (of === 'items') reply.write(head(''));
  let sent = 0;
  const more = (): void => {
    let taken = !reply.destroyed;
    while (taken) {
      const object = `{"metadata":{"namespace":"n","name":"endless-${sent++}","resourceVersion":"1"},"spec":{}}`;
      taken = reply.write(of === 'items' ? `${object},` : `{"type":"ADDED","object":${object}}\n`);
    }
  };
  reply.on('drain', more);
  more();
}

function dripBody(reply: ServerResponse, everyMs: number, clock: Clock): void {
  let body = Buffer.alloc(0);
  const write = reply.write.bind(reply);
  const take = (chunk: unknown): boolean => {
    body = Buffer.concat([body, Buffer.from(chunk as string | Uint8Array)]);
    return true;
  };
  reply.write = take as typeof reply.write;
  reply.end = ((chunk?: unknown) => {
    if (chunk !== undefined) take(chunk);
    return reply;
  }) as typeof reply.end;
  const drip = (): void => {
    if (reply.destroyed) return;
    if (body.length > 0) write(body.subarray(0, 1));
    body = body.subarray(1);
    clock.after(everyMs, drip);
  };
  drip();
}

/** Lets only the first bytes of the body through, then calls `then`. */
function cutBody(reply: ServerResponse, afterBytes: number, then: () => void): void {
  let left = afterBytes;
  const write = reply.write.bind(reply);
  const cut = (chunk: unknown): boolean => {
    const bytes = Buffer.from(chunk as string | Uint8Array);
    const part = bytes.subarray(0, left);
    if (left > 0) write(part, () => left === 0 && then());
    left -= part.length;
    return true;
  };
  reply.write = cut as typeof reply.write;
  reply.end = ((chunk?: unknown) => {
    if (chunk !== undefined) cut(chunk);
    // A shorter body ends early.
    if (left > 0) {
      left = 0;
      then();
    }
    return reply;
  }) as typeof reply.end;
}
