/** The ports in the chart's Service and NetworkPolicy, for the transports of the servers in its values. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parseAllDocuments } from 'yaml';
import { helmTemplate, noHelm } from './kit/helm.ts';

interface PolicyRule {
  readonly ports: readonly { readonly port: number; readonly protocol: string }[] | null;
  readonly from?: readonly object[];
}

/** `UDP 53`, … of the Service, and of each rule in the policy with its peers. */
function portsOf(values: object): {
  readonly service: readonly string[];
  readonly rules: readonly { readonly ports: readonly string[] | null; readonly from: unknown }[];
} {
  const objects = parseAllDocuments(
    helmTemplate({ networkPolicy: { enabled: true }, ...values }),
  ).map(
    (each) =>
      each.toJS() as { kind: string; spec: { ports: unknown; ingress: PolicyRule[] } } | null,
  );
  const named = (kind: string): { ports: unknown; ingress: PolicyRule[] } =>
    objects.find((each) => each?.kind === kind)!.spec;
  const shown = (ports: PolicyRule['ports']): readonly string[] | null =>
    ports?.map(({ port, protocol }) => `${protocol} ${port}`).toSorted() ?? null;
  return {
    service: shown(named('Service').ports as PolicyRule['ports'])!,
    rules: named('NetworkPolicy').ingress.map(({ ports, from }) => ({
      ports: shown(ports),
      from: from ?? 'anyone',
    })),
  };
}

const server = (
  zones: readonly object[],
  plugins: readonly object[] = [],
  port = 53,
): Readonly<Record<string, unknown>> => ({ servers: [{ zones, port, plugins }] });
const whoami = { name: 'whoami' };

describe("the chart's NetworkPolicy", { skip: noHelm() ?? false }, () => {
  test('allows DNS and metrics by default, over both transports', () => {
    assert.deepEqual(portsOf({}).rules, [
      { ports: ['TCP 53', 'UDP 53'], from: 'anyone' },
      { ports: ['TCP 9153'], from: 'anyone' },
    ]);
  });

  test('allows TCP even if the Service does not offer it, because pods retry truncated replies over TCP', () => {
    const { service, rules } = portsOf(server([{ zone: '.' }], [whoami]));
    assert.deepEqual(service, ['UDP 53']);
    assert.deepEqual(rules[0]!.ports, ['TCP 53', 'UDP 53']);
  });

  test('has no rule for metrics if nothing serves them; an empty list of ports would allow every port', () => {
    assert.equal(portsOf(server([{ zone: '.' }], [whoami])).rules.length, 1);
  });

  test('limits metrics to its peers', () => {
    const metricsFrom = [{ namespaceSelector: { matchLabels: { team: 'monitoring' } } }];
    const { rules } = portsOf({ networkPolicy: { enabled: true, metricsFrom } });
    assert.deepEqual(rules[1], { ports: ['TCP 9153'], from: metricsFrom });
  });

  test('allows the API server to reach `console` and `admin` on addresses of the pod', () => {
    const plugins = [
      { name: 'console', parameters: ':9155', configBlock: 'token_file /etc/console/token' },
      { name: 'admin', parameters: '0.0.0.0:9154', configBlock: 'token_file /etc/admin/token' },
    ];
    const { rules } = portsOf(server([{ zone: '.' }], plugins));
    assert.deepEqual(rules[1], { ports: ['TCP 9154', 'TCP 9155'], from: 'anyone' });
    for (const parameters of ['', 'localhost:9155', '127.0.0.1:9155', '[::1]:9155'])
      assert.equal(
        portsOf(server([{ zone: '.' }], [{ name: 'console', parameters }])).rules.length,
        1,
        parameters,
      );
  });
});

describe("the chart's ports", { skip: noHelm() ?? false }, () => {
  for (const scheme of ['tls://', 'https://', 'grpc://'])
    test(`${scheme} is TCP only`, () => {
      const { service, rules } = portsOf(server([{ zone: '.', scheme }], [whoami], 853));
      assert.deepEqual(service, ['TCP 853']);
      assert.deepEqual(rules[0]!.ports, ['TCP 853']);
    });
});
