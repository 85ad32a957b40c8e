/** Bodies of requests that are on their way. */
import type { IncomingMessage } from 'node:http';

/**
 * What became of a body. `too-large`: no body may be so long. `busy`: too much was on its way. `gone`: its sender went away.
 */
export type Body = { readonly bytes: Buffer } | 'too-large' | 'busy' | 'gone';

/** How much is kept, bytes. */
export interface BodyLimits {
  readonly each: number;
  /** Of all that have not come whole. */
  readonly all: number;
}

interface Coming {
  bytes: number;
  readonly drop: () => void;
}

/**
 * Reads bodies within a bound for all of them: beyond it the one is dropped that has been coming for longest. Who sends in earnest
 * is done in a moment, so that those who send slowly to fill the memory lose to those who have something to say.
 */
export class IncomingBodies {
  readonly #limits: BodyLimits;
  /** The oldest first. */
  readonly #coming = new Set<Coming>();
  #held = 0;

  constructor(limits: BodyLimits) {
    this.#limits = limits;
  }

  /** The connection stays, so that the sender can be told. */
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
        // What comes behind the end is passed over.
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
