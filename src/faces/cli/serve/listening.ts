/** Opens listening sockets. Errors mention the option that set the address. */
import { printHostPort } from '../../../server/base/ip.ts';
import { Problem } from '../../../server/base/problem.ts';
import { allowLowPort } from '../../../server/runtime/low-ports.ts';
import { whyFailed } from '../../../server/base/why-failed.ts';

/** An address, and the option that sets it. */
export interface ListenPlace {
  readonly host: string;
  readonly port: number;
  readonly option: string;
}

/**
 * Calls `listen`.
 * @returns its result, the port
 * @throws Problem `cannot-listen`
 */
export async function listening(
  { host, port, option }: ListenPlace,
  listen: () => Promise<number>,
): Promise<number> {
  allowLowPort(port);
  try {
    return await listen();
  } catch (error) {
    throw new Problem({
      code: 'cannot-listen',
      text: `cannot listen on ${printHostPort(host, port)}: ${whyFailed(error)}`,
      remedy: `Use another port (${option}), or find the program that uses it: ss -ltnp`,
      cause: error,
    });
  }
}
