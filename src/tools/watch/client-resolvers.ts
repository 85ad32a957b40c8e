/** Recognises the clients' resolvers by their lookups. */
import {
  forwarder,
  resolverOf,
  type NamedResolver,
} from '../capture/fingerprint/named-resolver.ts';
import { Recognition } from '../capture/fingerprint/recognition.ts';
import type { SeenLookup } from '../capture/pair/seen-exchange.ts';
import { recognise } from '../doctor/observe/client-list.ts';

/** The bytes of one recognition, estimated: its traits and their parts. */
const RECOGNITION_BYTES = 2500;

/** Recognises resolvers of a number of clients; the one that was silent for longest goes first. */
export class ClientResolvers {
  readonly #most: number;
  readonly #known = new Map<string, { readonly recognition: Recognition; lookups: number }>();

  /** @param most clients that are remembered */
  constructor(most: number) {
    this.#most = most;
  }

  /** @param id of the client, as `Parties.idAt` gives it */
  add(id: string, lookup: SeenLookup): void {
    const known = this.#known.get(id) ?? { recognition: new Recognition(), lookups: 0 };
    // The order is that of the last lookup.
    this.#known.delete(id);
    if (this.#known.size >= this.#most) this.#makeRoom();
    this.#known.set(id, known);
    known.lookups++;
    recognise(known.recognition, lookup);
  }

  /** @param isServer whether the client answers queries itself */
  of(id: string, isServer: boolean): NamedResolver {
    if (isServer) return forwarder;
    const { recognition, lookups } = this.#known.get(id) ?? {
      recognition: new Recognition(),
      lookups: 0,
    };
    return resolverOf(recognition, lookups);
  }

  /** Several at once: each search for the first of a Map skips all deleted entries before it. */
  #makeRoom(): void {
    let left = Math.ceil(this.#most / 20);
    for (const oldest of this.#known.keys()) {
      if (left-- === 0) return;
      this.#known.delete(oldest);
    }
  }

  /** The bytes that this number of clients takes, estimated. */
  static limitBytes(clients: number): number {
    return clients * RECOGNITION_BYTES;
  }

  get bytes(): number {
    return this.#known.size * RECOGNITION_BYTES;
  }
}
