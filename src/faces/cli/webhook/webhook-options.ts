/** The command line of `ndots webhook`. */
import type { Mode } from '../../../addons/webhook/admission.ts';
import { clusterKeys, clusterOptions, type ClusterOptions } from '../cluster-options.ts';
import { group, many, one, type OptionValue, type Usage } from '../option.ts';
import { firstGiven, parseOptions } from '../option-parse.ts';
import { choice, file, integer, namespaceName, readAction, text, usage } from '../option-values.ts';

const actions = ['serve', 'policy'] as const;

export interface WebhookOptions extends ClusterOptions {
  readonly action: (typeof actions)[number];
  readonly mode: Mode;
  readonly ndots: number | null;
  /** File with lines `namespace/workload: ndots`. */
  readonly advice: string | null;
  readonly host: string;
  readonly port: number;
  readonly namespace: string | null;
  readonly service: string;
  readonly secret: string;
  readonly configuration: string;
  /** A certificate and key maintained by another program, or null if the webhook maintains its own in the Secret. */
  readonly files: { readonly cert: string; readonly key: string } | null;
  readonly name: string;
  readonly namespaceLabels: Readonly<Record<string, string>>;
}

const label: OptionValue<readonly [string, string]> = {
  placeholder: 'KEY=VALUE',
  read(given, name) {
    const at = given.indexOf('=');
    if (at <= 0) throw usage(`${name} takes KEY=VALUE, not "${given}"`);
    return [given.slice(0, at), given.slice(at + 1)];
  },
};

const table = {
  ...group('Values for pods', {
    mode: one(
      '--mode',
      choice('MODE', ['advise', 'enforce']),
      'advise: only write an annotation (default); enforce: set dnsConfig',
    ),
    ndots: one(
      '--ndots',
      integer('N', 0, 15),
      'ndots for pods without an annotation (default: leave them unchanged)',
    ),
    advice: one('--advice', file(), 'YAML file of NAMESPACE/WORKLOAD: NDOTS lines'),
  }),
  ...group('Server', {
    host: one('--host', text('IP'), 'listen on this address (all)'),
    port: one('--port', integer('PORT', 0, 65_535), 'listen on this port (8443)'),
    cert: one(
      '--cert',
      file(),
      'certificate managed elsewhere (cert-manager); reloaded when it changes',
    ),
    key: one('--key', file(), 'key of the certificate'),
  }),
  ...group('Cluster', {
    namespace: one(
      '--namespace',
      namespaceName,
      'namespace of the Service and the Secret (MY_POD_NAMESPACE, or the pod’s)',
    ),
    service: one('--service', text('NAME'), 'service that the API server calls (ndots-webhook)'),
    secret: one('--secret', text('NAME'), 'Secret that stores the certificate (ndots-webhook)'),
    configuration: one(
      '--configuration',
      text('NAME'),
      'MutatingWebhookConfiguration that receives the CA (ndots-webhook)',
    ),
    ...clusterOptions,
  }),
  ...group('Policy', {
    name: one('--name', text('NAME'), 'name of the policy and its binding (ndots-dns)'),
    labels: many('--namespace-label', label, 'only namespaces with this label; repeatable'),
  }),
};

const ofServe = [
  'mode',
  'advice',
  'host',
  'port',
  'cert',
  'key',
  'namespace',
  'service',
  'secret',
  'configuration',
  ...clusterKeys,
] as const;
const ofPolicy = ['name', 'labels'] as const;

export const webhookUsage: Usage = {
  synopsis: 'serve [--mode enforce] | policy [--ndots N]',
  examples: [
    ['policy --ndots 2 | kubectl apply -f -', 'install a policy (Kubernetes 1.36 and later)'],
    ['serve --mode enforce', 'run the webhook in a pod'],
  ],
  style: 'gnu',
  options: table,
  notes: [
    'Set the annotations ndots.dev/dns-ndots: "2" and ndots.dev/dns-options: "timeout:1,single-request-reopen" on a pod template, or on a namespace for all its pods. The annotation ndots.dev/dns: "off" on either disables changes. Options in a pod’s dnsConfig are never changed.',
    'Exit codes: 0 done, 2 failed, 3 usage error.',
  ],
  words: { words: actions },
};

/** @param env for `MY_POD_NAMESPACE` */
export function parseWebhookOptions(
  words: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): WebhookOptions {
  const { values, words: rest } = parseOptions(table, words);
  const [given = '', ...more] = rest;
  const action = readAction(given, actions);
  if (more.length > 0) throw usage(`unexpected word "${more[0]}"`);
  const others: readonly (keyof typeof table)[] = action === 'serve' ? ofPolicy : ofServe;
  const other = firstGiven(table, values, others);
  if (other !== null) throw usage(`${other} needs ${action === 'serve' ? 'policy' : 'serve'}`);
  const { cert, key } = values;
  if ((cert === null) !== (key === null)) throw usage('--cert and --key must be given together');
  return {
    ...values,
    action,
    mode: values.mode ?? 'advise',
    host: values.host ?? '::',
    port: values.port ?? 8443,
    namespace: values.namespace ?? env['MY_POD_NAMESPACE'] ?? null,
    service: values.service ?? 'ndots-webhook',
    secret: values.secret ?? 'ndots-webhook',
    configuration: values.configuration ?? 'ndots-webhook',
    files: cert === null || key === null ? null : { cert, key },
    name: values.name ?? 'ndots-dns',
    namespaceLabels: Object.fromEntries(values.labels),
  };
}
