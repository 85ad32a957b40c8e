/**
 * Builds an equivalent policy that the API server evaluates itself, without a server or certificate.
 * MutatingAdmissionPolicy has been stable since Kubernetes 1.36.
 */
import { annotations } from './dns-advice.ts';

export interface PolicyParts {
  readonly name: string;
  /** The value for pods that have no annotation, even on their namespace, or null to leave them unchanged. */
  readonly ndots: number | null;
  /**
   * Labels that namespaces must have, such as `{team: "web"}`. If empty, selects every namespace except `kube-system`.
   */
  readonly namespaceLabels: Readonly<Record<string, string>>;
}

/** The policy and its binding as API objects. */
export function policyObjects({ name, ndots, namespaceLabels }: PolicyParts): readonly object[] {
  const key = annotations.ndots;
  const annotation = (of: string): string =>
    `has(${of}.metadata.annotations) && '${key}' in ${of}.metadata.annotations ? ${of}.metadata.annotations['${key}']`;
  const wanted = `${annotation('object')} : (${annotation('namespaceObject')} : '${ndots ?? ''}')`;
  const option = "Object.spec.dnsConfig.options{name: 'ndots', value: variables.ndots}";
  return [
    {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'MutatingAdmissionPolicy',
      metadata: { name },
      spec: {
        failurePolicy: 'Ignore',
        reinvocationPolicy: 'IfNeeded',
        matchConstraints: {
          resourceRules: [
            { apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] },
          ],
        },
        variables: [{ name: 'ndots', expression: wanted }],
        matchConditions: [
          {
            name: 'asks-the-cluster',
            expression:
              "!has(object.spec.dnsPolicy) || object.spec.dnsPolicy == 'ClusterFirstWithHostNet' || " +
              "(object.spec.dnsPolicy == 'ClusterFirst' && !(has(object.spec.hostNetwork) && object.spec.hostNetwork))",
          },
          {
            name: 'not-switched-off',
            expression: `!(has(object.metadata.annotations) && '${annotations.dns}' in object.metadata.annotations && object.metadata.annotations['${annotations.dns}'] == 'off')`,
          },
          {
            name: 'has-no-ndots-of-its-own',
            expression:
              "!has(object.spec.dnsConfig) || !has(object.spec.dnsConfig.options) || !object.spec.dnsConfig.options.exists(o, o.name == 'ndots')",
          },
        ],
        mutations: [
          {
            patchType: 'JSONPatch',
            jsonPatch: {
              // Only numbers from 0 to 15 have an effect.
              expression:
                "!variables.ndots.matches('^([0-9]|1[0-5])$') ? [] : " +
                `!has(object.spec.dnsConfig) ? [JSONPatch{op: 'add', path: '/spec/dnsConfig', value: Object.spec.dnsConfig{options: [${option}]}}] : ` +
                `!has(object.spec.dnsConfig.options) ? [JSONPatch{op: 'add', path: '/spec/dnsConfig/options', value: [${option}]}] : ` +
                `[JSONPatch{op: 'add', path: '/spec/dnsConfig/options/-', value: ${option}}]`,
            },
          },
        ],
      },
    },
    {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'MutatingAdmissionPolicyBinding',
      metadata: { name },
      spec: {
        policyName: name,
        matchResources: {
          namespaceSelector: {
            ...(Object.keys(namespaceLabels).length > 0 && { matchLabels: namespaceLabels }),
            // Excludes pods that provide DNS and networking, which must never depend on this.
            matchExpressions: [
              { key: 'kubernetes.io/metadata.name', operator: 'NotIn', values: ['kube-system'] },
            ],
          },
        },
      },
    },
  ];
}
