/** Decides what happens to a service port's traffic on a node: which endpoints it goes to, and what is refused. */
import type { ServiceEndpoint, EndpointMap, Where } from './endpoints.ts';
import { portKey, usableEndpoints } from './endpoints.ts';
import { holdsAddress, isExternallyAccessible, type ProxiedPort } from './service-port.ts';
import type { IpFamily } from '../../../server/kube/manifests/slices.ts';

/** kube-proxy options that affect rules. */
export interface ProxyOptions extends Where {
  readonly family: IpFamily;
  /** The node's own address, or null if unknown. */
  readonly nodeIP: string | null;
  /** `--cluster-cidr`: traffic from other addresses is masqueraded. Null if kube-proxy does not know it. */
  readonly clusterCIDR: string | null;
  readonly masqueradeAll: boolean;
  /** `--iptables-masquerade-bit`. */
  readonly masqueradeBit: number;
  /** `--iptables-localhost-nodeports`; IPv4 only. */
  readonly localhostNodePorts: boolean;
  /** Node addresses that accept node ports (`--nodeport-addresses`), or null for all of them. */
  readonly nodePortIPs: readonly string[] | null;
}

export const defaultProxy: ProxyOptions = {
  family: 'IPv4',
  node: '',
  zone: '',
  nodeIP: null,
  clusterCIDR: null,
  masqueradeAll: false,
  masqueradeBit: 14,
  localhostNodePorts: true,
  nodePortIPs: null,
};

/** The services and endpoints of one address family. */
export interface ClusterState {
  readonly ports: readonly ProxiedPort[];
  readonly endpoints: EndpointMap;
}

/** The filter's action on traffic without endpoints. */
export type FilterRefusal = 'reject' | 'drop';

/** One service port in a node's rules. */
export interface Traffic {
  readonly port: ProxiedPort;
  readonly node: string;
  readonly cluster: readonly ServiceEndpoint[];
  readonly local: readonly ServiceEndpoint[];
  readonly reachable: readonly ServiceEndpoint[];
  /** True if any node has an endpoint. */
  readonly any: boolean;
  /** True if there are rules for traffic from outside the cluster network. */
  readonly external: boolean;
  /** Null: traffic to the cluster address is served. */
  readonly refusedInside: FilterRefusal | null;
  /** If null, traffic to external addresses and node ports is served. */
  readonly refusedOutside: FilterRefusal | null;
  /** True if the node itself is within the load balancer's source ranges. */
  readonly nodeAllowed: boolean;
}

/** Returns all of a cluster's service ports for this node, sorted by name. */
export function trafficOf(state: ClusterState, options: ProxyOptions): readonly Traffic[] {
  return state.ports
    .map((port) => {
      const { namespace, service, portName, protocol } = port;
      const all = state.endpoints.get(portKey(namespace, service, portName, protocol)) ?? [];
      const usable = usableEndpoints(all, port, options);
      const { any, local } = usable;
      const refused = (mustBeLocal: boolean): FilterRefusal | null => {
        if (!any) return 'reject';
        return mustBeLocal && local.length === 0 ? 'drop' : null;
      };
      const { nodeIP } = options;
      return {
        port,
        node: options.node,
        ...usable,
        external: any && isExternallyAccessible(port),
        refusedInside: refused(port.internalPolicyLocal),
        refusedOutside: refused(port.externalPolicyLocal),
        nodeAllowed:
          nodeIP !== null && port.sourceRanges.some((range) => holdsAddress(range, nodeIP)),
      };
    })
    .toSorted((a, b) => order(a.port, b.port));
}

function order(a: ProxiedPort, b: ProxiedPort): number {
  if (a.name !== b.name) return a.name < b.name ? -1 : 1;
  return a.protocol < b.protocol ? -1 : 1;
}

/** Counts the endpoints of all service ports, whether or not they are used. */
export function countEndpoints(state: ClusterState): number {
  return state.ports.reduce((sum, { namespace, service, portName, protocol }) => {
    const key = portKey(namespace, service, portName, protocol);
    return sum + (state.endpoints.get(key)?.length ?? 0);
  }, 0);
}

/** The mark on masqueraded packets: `0x00004000`. */
export function masqueradeMark(bit: number): string {
  return `0x${(2 ** bit).toString(16).padStart(8, '0')}`;
}
