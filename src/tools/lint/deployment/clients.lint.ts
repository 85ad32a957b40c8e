/** Rules about client pods, covering dnsPolicy, dnsConfig and StatefulSet names. */
import type { DocumentPath } from '../../../server/kube/manifests/yaml-document.ts';
import { child, children, text, texts } from '../../../server/base/json-object.ts';
import { objectRule, type LintRule } from '../lint-rule.ts';
import { containersOf, podSpecOf, workloadKinds } from '../workload.ts';

/** The value as text, because YAML parses some values as numbers where Kubernetes wants text. */
function printed(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
}

const podNames: LintRule = objectRule({
  code: 'CF37',
  severity: 'warning',
  summary: 'a StatefulSet whose Service does not give its pods names',
  kinds: ['StatefulSet'],
  find(object, tell, { objects }) {
    const name = text(child(object.value, 'spec'), 'serviceName');
    const service = objects.find(
      (each) =>
        each.kind === 'Service' && each.name === name && each.namespace === object.namespace,
    );
    if (service === undefined) return;
    const address = text(child(service.value, 'spec'), 'clusterIP');
    if (address === 'None') return;
    tell({
      at: { object, path: ['spec', 'serviceName'] },
      text: `${object.name}-0.${name} has no records, because Service ${name} is not headless`,
      hint: 'Pods get names only from a Service with clusterIP: None. Otherwise, SRV and PTR show addresses with dashes.',
      remedy: 'Give the StatefulSet a headless Service in addition to the one with an address.',
    });
  },
});

const policies: ReadonlySet<string> = new Set([
  'ClusterFirst',
  'ClusterFirstWithHostNet',
  'Default',
  'None',
]);

/** The limits of the API server and of resolvers. */
const SERVERS_MAX = 3;
const SEARCHES_MAX = 32;
const SEARCH_CHARACTERS_MAX = 2048;
const NDOTS_MAX = 15;

const bounds: LintRule = objectRule({
  code: 'CF45',
  severity: 'error',
  summary: 'a dnsPolicy or dnsConfig that is rejected, or that resolvers truncate',
  kinds: workloadKinds,
  find(object, tell) {
    const pods = podSpecOf(object);
    if (pods === null) return;
    const { spec, path } = pods;
    const at = (...keys: DocumentPath) => ({ object, path: [...path, ...keys] });
    const policy = text(spec, 'dnsPolicy') || 'ClusterFirst';
    const config = child(spec, 'dnsConfig');
    const servers = texts(config, 'nameservers');
    if (!policies.has(policy))
      tell({
        at: at('dnsPolicy'),
        text: `Kubernetes has no dnsPolicy '${policy}'`,
        remedy: `Known: ${[...policies].join(', ')}.`,
      });
    if (policy === 'None' && servers.length === 0)
      tell({
        at: at('dnsPolicy'),
        text: 'dnsPolicy None without nameservers is rejected',
        remedy: 'Add one: dnsConfig: { nameservers: [10.96.0.10] }',
      });
    if (servers.length > SERVERS_MAX)
      tell({
        at: at('dnsConfig', 'nameservers'),
        text: `${servers.length} nameservers, but the API server accepts only ${SERVERS_MAX}`,
        remedy: 'Keep three; resolvers do not read more.',
      });
    const searches = texts(config, 'searches');
    if (searches.length > SEARCHES_MAX || searches.join(' ').length > SEARCH_CHARACTERS_MAX)
      tell({
        at: at('dnsConfig', 'searches'),
        text: `the search list is longer than Kubernetes accepts (${SEARCHES_MAX} domains, ${SEARCH_CHARACTERS_MAX} characters)`,
        remedy:
          'Keep the domains that programs need; each one adds a query for every name that is not found.',
      });
    children(config, 'options').forEach((option, index) => {
      const given = option['value'];
      if (typeof given === 'number' || typeof given === 'boolean') {
        tell({
          at: at('dnsConfig', 'options', index, 'value'),
          text: `the value of ${text(option, 'name') || 'an option'} is ${typeof given === 'number' ? 'a number' : 'true or false'}, but the API server accepts only text`,
          hint: 'It rejects the whole object: cannot unmarshal into PodDNSConfigOption.value of type string.',
          remedy: `Write it in quotes: value: "${String(given)}".`,
        });
        return;
      }
      if (text(option, 'name') !== 'ndots') return;
      const value = printed(option['value']);
      if (/^\d+$/.test(value) && Number(value) <= NDOTS_MAX) return;
      tell({
        at: at('dnsConfig', 'options', index),
        text: `ndots '${value}' is not a number from 0 to ${NDOTS_MAX}`,
        severity: 'warning',
        hint: 'glibc uses 15 for larger numbers; other values count as 0 or are ignored.',
        remedy: 'Write a number as text: value: "2".',
      });
    });
  },
});

const hostNetwork: LintRule = objectRule({
  code: 'CF46',
  severity: 'warning',
  summary: 'hostNetwork with dnsPolicy ClusterFirst, which means Default',
  kinds: workloadKinds,
  find(object, tell) {
    const pods = podSpecOf(object);
    if (pods === null || pods.spec['hostNetwork'] !== true || object.namespace === 'kube-system')
      return;
    const policy = text(pods.spec, 'dnsPolicy');
    if (policy !== '' && policy !== 'ClusterFirst') return;
    tell({
      at: { object, path: [...pods.path, 'hostNetwork'] },
      text: `${object.name} queries its node's resolvers, so it cannot resolve cluster services`,
      hint: 'With hostNetwork, dnsPolicy ClusterFirst means Default.',
      remedy: 'Write dnsPolicy: ClusterFirstWithHostNet, or Default if you want that.',
    });
  },
});

const lowNdots: LintRule = objectRule({
  code: 'CF47',
  severity: 'warning',
  summary: 'ndots 0 or 1 for a musl image',
  kinds: workloadKinds,
  find(object, tell) {
    const pods = podSpecOf(object);
    if (pods === null) return;
    const musl = containersOf(object).find(({ image }) => /alpine|musl/i.test(image));
    if (musl === undefined) return;
    children(child(pods.spec, 'dnsConfig'), 'options').forEach((option, index) => {
      const value = printed(option['value']);
      if (text(option, 'name') !== 'ndots' || (value !== '0' && value !== '1')) return;
      tell({
        at: { object, path: [...pods.path, 'dnsConfig', 'options', index] },
        text: `with ndots ${value}, ${musl.image} never finds service.namespace`,
        hint: 'musl tries a name with that many dots only as written; glibc tries the search path afterwards.',
        remedy:
          'Use ndots 2, or full names with a trailing dot. To see the difference: ndots trace service.namespace --client all',
      });
    });
  },
});

export const clientRules: readonly LintRule[] = [podNames, bounds, hostNetwork, lowNdots];
