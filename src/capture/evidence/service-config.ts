/** Names by which libraries of gRPC ask for configurations and load balancers that hardly anybody publishes. */
import { TYPE } from '../../wire/iana.ts';

/** Whether a question is one of these, with a search domain behind it or not. */
export function isServiceConfig(name: string, type: number): boolean {
  return (
    (type === TYPE.TXT && name.startsWith('_grpc_config.')) ||
    (type === TYPE.SRV && name.startsWith('_grpclb._tcp.'))
  );
}
