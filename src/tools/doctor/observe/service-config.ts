/**
 * Names by which libraries of gRPC ask for configurations and load balancers that hardly anybody
 * publishes.
 */
import { TYPE } from '../../../server/wire/iana.ts';
import { TYPE_CUT } from '../../capture/pair/message-head.ts';

/**
 * True for these questions, with or without a search domain appended. No other name begins like
 * these, so a cut one is recognised, too.
 */
export function isServiceConfig(name: string, type: number): boolean {
  return (
    ((type === TYPE.TXT || type === TYPE_CUT) && name.startsWith('_grpc_config.')) ||
    ((type === TYPE.SRV || type === TYPE_CUT) && name.startsWith('_grpclb._tcp.'))
  );
}
