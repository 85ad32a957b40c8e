/** `ndots lab rules`: prints kube-proxy's rules without running kube-proxy. */
import { didYouMean, Problem } from '../../../server/base/problem.ts';
import {
  apiObjects,
  clusterState,
  manifestObjects,
  withColons,
  type ProxyObjects,
} from '../../../tools/lab/proxy-rules/cluster-state.ts';
import { iptablesJumps, iptablesRules } from '../../../tools/lab/proxy-rules/iptables.ts';
import { nftablesRules } from '../../../tools/lab/proxy-rules/nftables.ts';
import type { ClusterState } from '../../../tools/lab/proxy-rules/traffic.ts';
import { accessOf, withCluster } from '../cluster-options.ts';
import { EXIT, type Io } from '../command.ts';
import type { RulesOptions } from './lab-options.ts';
import { usage } from '../option-values.ts';
import { tellProblems } from '../problem-text.ts';

/** @param services to print, as NAMESPACE/NAME; if empty, all of them */
export async function printRules(
  options: RulesOptions,
  services: readonly string[],
  io: Io,
): Promise<number> {
  const wrong = services.find((word) => word.split('/').length !== 2);
  if (wrong !== undefined) throw usage(`give a service as NAMESPACE/NAME, not "${wrong}"`);
  const { mode, proxy, oldNames } = options;
  const all = clusterState(await objectsOf(options, io), proxy.family);
  const chosen = services.length === 0 ? all : onlyServices(all, services);
  const state = oldNames ? withColons(chosen) : chosen;
  io.out(
    mode === 'nftables'
      ? nftablesRules(state, proxy)
      : `${iptablesRules(state, proxy)}${iptablesJumps()}`,
  );
  return EXIT.ok;
}

async function objectsOf(options: RulesOptions, io: Io): Promise<ProxyObjects> {
  if (options.manifests !== null) {
    return manifestObjects(options.manifests, (problem) => tellProblems('lab', [problem], io));
  }
  return withCluster(accessOf(options, io), (client) => apiObjects(client, io.signal));
}

function onlyServices(state: ClusterState, services: readonly string[]): ClusterState {
  const known = new Set(state.ports.map(({ namespace, service }) => `${namespace}/${service}`));
  for (const wanted of services) {
    if (known.has(wanted)) continue;
    throw new Problem({
      code: 'no-such-service',
      text: `there is no service ${wanted} with kube-proxy rules`,
      hint: didYouMean(
        wanted,
        known,
        'Services without a cluster IP of this family (headless, ExternalName) have no rules.',
      ),
    });
  }
  const ports = state.ports.filter(({ namespace, service }) =>
    services.includes(`${namespace}/${service}`),
  );
  return { ...state, ports };
}
