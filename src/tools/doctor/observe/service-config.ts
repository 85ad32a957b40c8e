/**
 * Names by which libraries of gRPC ask for configurations and load balancers that hardly anybody
 * publishes.
 */
import { TYPE } from '../../../server/wire/iana.ts';
import { TYPE_CUT } from '../../capture/pair/message-head.ts';

/**
 * Whether a question is one of these, with a search domain behind it or not. No other name begins
 * like these, so one that is cut is known, too.
 */
export function isServiceConfig(name: string, type: number): boolean {
  return (
    ((type === TYPE.TXT || type === TYPE_CUT) && name.startsWith('_grpc_config.')) ||
    ((type === TYPE.SRV || type === TYPE_CUT) && name.startsWith('_grpclb._tcp.'))
  );
}
