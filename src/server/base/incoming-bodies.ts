/** Reads the bodies of requests. */
import type { IncomingMessage } from 'node:http';

/**
 * The outcome of reading a body. `too-large`: it exceeds the limit for one. `busy`: all together
 * exceeded theirs. `gone`: the sender disconnected.
 */
export type Body = { readonly bytes: Buffer } | 'too-large' | 'busy' | 'gone';

/** Limits in bytes. */
export interface BodyLimits {
  readonly each: number;
  /** For all bodies that are not complete. */
  readonly all: number;
}

interface Coming {
  bytes: number;
  readonly drop: () => void;
}

/**
 * Reads bodies within one limit for all of them. Above it, the longest-running one is dropped. A
 * normal sender finishes quickly, so the slow senders of an attack lose.
 */
export class IncomingBodies {
  readonly #limits: BodyLimits;
  /** The oldest first. */
  readonly #coming = new Set<Coming>();
  #held = 0;

  constructor(limits: BodyLimits) {
    this.#limits = limits;
  }

  /** The connection stays open, so that the sender can be answered. */
  read(request: IncomingMessage): Promise<Body> {
    return new Promise((resolve) => {
      const pieces: Buffer[] = [];
      const end = (body: Body): void => {
        if (this.#coming.delete(coming)) this.#held -= coming.bytes;
        pieces.length = 0;
        resolve(body);
      };
      const coming: Coming = { bytes: 0, drop: () => end('busy') };
      this.#coming.add(coming);
      request.on('data', (piece: Buffer) => {
        // Further input of a dropped body is ignored.
        if (!this.#coming.has(coming)) return;
        pieces.push(piece);
        coming.bytes += piece.length;
        this.#held += piece.length;
        if (coming.bytes > this.#limits.each) return end('too-large');
        for (const oldest of this.#coming) {
          if (this.#held <= this.#limits.all) return;
          oldest.drop();
        }
      });
      request.on('end', () => end({ bytes: Buffer.concat(pieces) }));
      request.on('error', () => end('gone'));
      request.on('close', () => end('gone'));
    });
  }
}
