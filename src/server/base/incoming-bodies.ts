/** Reads request bodies. */
import type { IncomingMessage } from 'node:http';

/**
 * The result of reading a body. `too-large` means over the limit for one body, and `busy` over the limit for all
 * bodies. `gone` means that the sender disconnected.
 */
export type Body = { readonly bytes: Buffer } | 'too-large' | 'busy' | 'gone';

/** Limits in bytes. */
export interface BodyLimits {
  readonly each: number;
  /** For all incomplete bodies together. */
  readonly all: number;
}

interface Coming {
  bytes: number;
  readonly drop: () => void;
}

/**
 * Reads bodies within a shared limit. Beyond it, the oldest incomplete body is dropped. Normal senders finish quickly,
 * so an attacker that sends slowly loses.
 */
export class IncomingBodies {
  readonly #limits: BodyLimits;
  /** Oldest first. */
  readonly #coming = new Set<Coming>();
  #held = 0;

  constructor(limits: BodyLimits) {
    this.#limits = limits;
  }

  /** Keeps the connection open, so that the sender can be given an answer. */
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
        // Ignore further input for a dropped body.
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
