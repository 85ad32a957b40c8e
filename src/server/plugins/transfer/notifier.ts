/** Sends NOTIFY to other servers when zones have changed (RFC 1996). */
import type { Clock } from '../../base/clock.ts';
import { printHostPort } from '../../base/ip.ts';
import type { Log } from '../../base/log.ts';
import type { Random } from '../../base/random.ts';
import type { Counter } from '../../metrics/registry.ts';
import { askDatagram, type RemoteServer } from '../../transport/one-exchange.ts';
import { CLASS, FLAG, OPCODE, rcodeName, TYPE } from '../../wire/iana.ts';
import { readMessage, writeMessage } from '../../wire/message.ts';

/**
 * Delay of a NOTIFY in milliseconds. All changes within this time cause only one, and by its end every worker serves
 * the new zone.
 */
const DELAY_MS = 200;
const TRIES = 3;
const TIMEOUT_MS = 2000;

/** Sends a message and returns the reply, over UDP or, in tests, by other means. */
export type Ask = typeof askDatagram;

export interface NotifierParts {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly sent: { with(result: 'accepted' | 'failed'): Counter };
  readonly ask?: Ask;
}

export interface Listeners {
  readonly to: readonly RemoteServer[];
  readonly source: string;
}

/** Tells other servers that a zone has changed (RFC 1996). */
export class Notifier {
  readonly #parts: NotifierParts;
  readonly #told = new Map<string, number>();
  #waiting = new Map<string, Listeners>();
  #stopped = false;

  constructor(parts: NotifierParts) {
    this.#parts = parts;
  }

  /**
   * Called when a worker serves this version of a zone. If several workers report the same version, the first one
   * counts.
   */
  changed(zone: string, serial: number, listeners: Listeners): void {
    if (this.#told.get(zone) === serial) return;
    this.#told.set(zone, serial);
    if (listeners.to.length === 0) return;
    this.#waiting.set(zone, listeners);
    if (this.#waiting.size === 1) this.#parts.clock.after(DELAY_MS, () => this.#send());
  }

  stop(): void {
    this.#stopped = true;
  }

  #send(): void {
    const waiting = this.#waiting;
    this.#waiting = new Map();
    if (this.#stopped) return;
    for (const [zone, { to, source }] of waiting)
      for (const server of to) void this.#notify(zone, server, source);
  }

  async #notify(zone: string, server: RemoteServer, source: string): Promise<void> {
    const { random, log, sent, ask = askDatagram } = this.#parts;
    const message = writeMessage({
      id: random.integer(65_536),
      flags: (OPCODE.NOTIFY << 11) | FLAG.AA,
      rcode: 0,
      question: [{ name: zone, type: TYPE.SOA, class: CLASS.IN }],
      answer: [],
      authority: [],
      additional: [],
      edns: null,
    });
    const where = printHostPort(server.host, server.port);
    try {
      const terms = { source, timeoutMs: TIMEOUT_MS, tries: TRIES };
      const { rcode } = readMessage(await ask(message, server, terms));
      if (rcode !== 0) throw new Error(`rcode was ${rcodeName(rcode)}`);
      sent.with('accepted').add(1);
      log.debug(`Sent notify for zone "${zone}" to ${where}`);
    } catch (error) {
      if (this.#stopped) return;
      sent.with('failed').add(1);
      log.warning(
        `Failed sending notifies: notify for zone "${zone}" was not accepted by "${where}": ${(error as Error).message}`,
      );
    }
  }
}
