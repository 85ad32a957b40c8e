/** Registers `ndots webhook` with an API server. */
import type { KubeJson } from './apiserver/store.ts';

/**
 * A MutatingWebhookConfiguration for new pods, like the chart's.
 * @param clientConfig the webhook's address
 */
export function webhookConfiguration(name: string, clientConfig: object): KubeJson {
  return {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'MutatingWebhookConfiguration',
    metadata: { name },
    webhooks: [
      {
        name: 'dns.ndots.dev',
        admissionReviewVersions: ['v1'],
        sideEffects: 'None',
        failurePolicy: 'Ignore',
        timeoutSeconds: 2,
        reinvocationPolicy: 'IfNeeded',
        clientConfig,
        rules: [
          { apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] },
        ],
      },
    ],
  } as unknown as KubeJson;
}
