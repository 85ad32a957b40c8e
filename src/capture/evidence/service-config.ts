/**
 * Names by which libraries of gRPC ask for configurations and load balancers that hardly anybody
 * publishes.
 */
import { TYPE } from '../../wire/iana.ts';

/** Of a question that is cut nobody knows the type; no other name begins like these. */
const CUT = 0;

/** Whether a question is one of these, with a search domain behind it or not. */
export function isServiceConfig(name: string, type: number): boolean {
  return (
    ((type === TYPE.TXT || type === CUT) && name.startsWith('_grpc_config.')) ||
    ((type === TYPE.SRV || type === CUT) && name.startsWith('_grpclb._tcp.'))
  );
}
