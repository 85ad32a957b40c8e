/** Recognises clients' resolvers from their lookups. */
import {
  forwarder,
  resolverOf,
  type NamedResolver,
} from '../capture/fingerprint/named-resolver.ts';
import { Recognition } from '../capture/fingerprint/recognition.ts';
import type { SeenLookup } from '../capture/pair/seen-exchange.ts';
import { recognise } from '../doctor/observe/client-list.ts';

/** The estimated size in bytes of a recognition, including its traits and their parts. */
const RECOGNITION_BYTES = 1100;

/**
 * Recognises the resolvers of a limited number of clients. The client that has been silent for longest is evicted
 * first.
 */
export class ClientResolvers {
  readonly #most: number;
  readonly #known = new Map<string, { readonly recognition: Recognition; lookups: number }>();

  /** @param most the number of clients to remember */
  constructor(most: number) {
    this.#most = most;
  }

  /** @param id the client's ID, from `Parties.idAt` */
  add(id: string, lookup: SeenLookup): void {
    const known = this.#known.get(id) ?? { recognition: new Recognition(), lookups: 0 };
    // Keep the order of the last lookup.
    this.#known.delete(id);
    if (this.#known.size >= this.#most) this.#makeRoom();
    this.#known.set(id, known);
    known.lookups++;
    recognise(known.recognition, lookup);
  }

  /** @param isServer whether the client itself answers queries */
  of(id: string, isServer: boolean): NamedResolver {
    if (isServer) return forwarder;
    const { recognition, lookups } = this.#known.get(id) ?? {
      recognition: new Recognition(),
      lookups: 0,
    };
    return resolverOf(recognition, lookups);
  }

  /** Evicts several at once, because finding a Map's first entry skips all entries deleted before it. */
  #makeRoom(): void {
    let left = Math.ceil(this.#most / 20);
    for (const oldest of this.#known.keys()) {
      if (left-- === 0) return;
      this.#known.delete(oldest);
    }
  }

  /** The estimated size in bytes of this many clients. */
  static limitBytes(clients: number): number {
    return clients * RECOGNITION_BYTES;
  }

  get bytes(): number {
    return this.#known.size * RECOGNITION_BYTES;
  }
}
