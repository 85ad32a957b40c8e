import type { Socket } from 'node:net';
import { endError, timeoutError } from './exchange-failure.ts';
import { Timed } from './timer-wheel.ts';

/** A connection that is being made: one of three things ends it, as a deadline the third. */
export class Dialling extends Timed {
  readonly #where: string;
  readonly #done: (error: unknown) => void;
  #over = false;

  /**
   * @param event what the socket tells when it is ready
   * @param where network and address: `tcp 10.0.0.1:443`
   * @param done told null when the connection is there
   */
  constructor(
    socket: Socket,
    event: 'connect' | 'secureConnect',
    where: string,
    done: (error: unknown) => void,
  ) {
    super();
    this.#where = where;
    this.#done = done;
    socket.once(event, () => {
      socket.off('error', this.give);
      this.give(null);
    });
    socket.on('error', this.give);
    socket.once('close', () => this.give(endError()));
  }

  readonly give = (error: unknown): void => {
    if (this.#over) return;
    this.#over = true;
    this.#done(error);
  };

  override expire(): void {
    this.give(timeoutError('dial', this.#where));
  }
}
