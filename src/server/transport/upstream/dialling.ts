import type { Socket } from 'node:net';
import { endError, timeoutError } from './exchange-failure.ts';
import { Timed } from '../timer-wheel.ts';

/** A connection attempt, which ends in success, with an error or at its deadline. */
export class Dialling extends Timed {
  readonly #where: string;
  readonly #done: (error: unknown) => void;
  #over = false;

  /**
   * @param event the socket event that signals success
   * @param where network and address, for errors: `tcp 10.0.0.1:443`
   * @param done called once, with null if the connection succeeded
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
