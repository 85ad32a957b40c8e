/** `ndots webhook`: sets pods' dnsConfig based on annotations, as an admission webhook or as an API server policy. */
import { stringify } from 'yaml';
import { systemClock } from '../../../server/base/clock.ts';
import { asObject } from '../../../server/base/json-object.ts';
import { makeLog, type Log } from '../../../server/base/log.ts';
import { Problem } from '../../../server/base/problem.ts';
import { FILE_MAX, readFileText } from '../../../server/base/read-file.ts';
import { parseYaml } from '../../../server/kube/manifests/yaml-document.ts';
import { Collection } from '../../../server/metrics/collection.ts';
import { defaultBuckets } from '../../../server/metrics/buckets.ts';
import { SharedRegistry } from '../../../server/metrics/shared-registry.ts';
import { ServingCertificate } from '../../../addons/webhook/serving-certificate.ts';
import { readNdots } from '../../../addons/webhook/dns-advice.ts';
import { NamespaceAnnotations } from '../../../addons/webhook/namespace-annotations.ts';
import { policyObjects } from '../../../addons/webhook/policy.ts';
import { WebhookServer, type WebhookMetrics } from '../../../addons/webhook/server.ts';
import { accessOf, clusterClient } from '../cluster-options.ts';
import { EXIT, type Command, type Io } from '../command.ts';
import { listening } from '../serve/listening.ts';
import { readText } from '../named-file.ts';
import { parseWebhookOptions, type WebhookOptions } from './webhook-options.ts';
import { untilSignal } from '../until-signal.ts';
import { whyFailed } from '../../../server/base/why-failed.ts';

export const webhook: Command = {
  name: 'webhook',
  async run(words, io) {
    const options = parseWebhookOptions(words, io.env);
    if (options.action === 'policy') {
      io.out(
        policyObjects(options)
          .map((object) => `---\n${stringify(object, { lineWidth: 0 })}`)
          .join(''),
      );
      return EXIT.ok;
    }
    return serve(options, io);
  },
};

async function serve(options: WebhookOptions, io: Io): Promise<number> {
  const ended = untilSignal('log');
  const measured = readAdvice(options.advice);
  const access = accessOf(options, io);
  const log = makeLog(
    (line) => io.out(`${line}\n`),
    () => false,
  );
  const client = clusterClient(access, { perSecond: 50, burst: 100, inFlight: 16 });
  const namespaces = new NamespaceAnnotations(client, systemClock, log);
  const collection = new Collection();
  const metrics = webhookMetrics(new SharedRegistry((event) => collection.add('webhook', event)));
  const server = new WebhookServer({
    ...options,
    metrics,
    scrape: () => collection.print('text'),
    sources: async ({ namespace }) => ({
      namespace: await namespaces.of(namespace),
      namespaceName: namespace,
      measured,
      ndots: options.ndots,
    }),
  });
  const port = await listening({ ...options, option: '--port' }, () => server.listen());
  log.info(`webhook (${options.mode}) on port ${port}, for ${access.name}`);
  const kept =
    options.files === null
      ? new ServingCertificate({
          ...options,
          client,
          namespace: options.namespace ?? access.namespace,
          clock: systemClock,
          log,
          onIdentity: (identity) => server.use(identity),
        }).run(ended)
      : keepFiles(options.files, server, log, ended);
  await kept;
  await server.close();
  client.close();
  return EXIT.ok;
}

/** Another program renews these files, so they are checked once a minute. */
const FILES_EVERY_MS = 60_000;

async function keepFiles(
  files: { readonly cert: string; readonly key: string },
  server: WebhookServer,
  log: Log,
  signal: AbortSignal,
): Promise<void> {
  let used = '';
  const look = (first: boolean): void => {
    try {
      const identity = {
        cert: readFileText(files.cert, FILE_MAX.small),
        key: readFileText(files.key, FILE_MAX.small),
      };
      if (identity.cert + identity.key === used) return;
      server.use(identity);
      used = identity.cert + identity.key;
      log.info(`serving with the certificate ${files.cert}`);
    } catch (error) {
      const text = `certificate ${files.cert} and key ${files.key} cannot be used: ${whyFailed(error)}`;
      if (first)
        throw new Problem({
          code: 'file-unreadable',
          text,
          remedy: 'Give a PEM certificate and its key.',
          cause: error,
        });
      log.warning(`${text}; the previous one stays in use`);
    }
  };
  look(true);
  const timer = setInterval(() => look(false), FILES_EVERY_MS);
  await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
  clearInterval(timer);
}

/**
 * Parses `namespace/workload: ndots` lines.
 * @throws Problem
 */
function readAdvice(path: string | null): ReadonlyMap<string, number> {
  if (path === null) return new Map();
  const content = readText(path, 'advice');
  const { documents, problems } = parseYaml(content, path);
  if (problems.length > 0) throw problems[0]!;
  return new Map(
    Object.entries(asObject(documents[0]?.value)).map(([workload, given]) => {
      const ndots = readNdots(String(given));
      if (ndots === null || !/^[^/]+\/[^/]+$/.test(workload))
        throw new Problem({
          code: 'bad-advice',
          text: `${path}: "${workload}: ${String(given)}" is not NAMESPACE/WORKLOAD: NDOTS`,
          hint: 'Example: shop/cart: 2',
        });
      return [workload, ndots];
    }),
  );
}

function webhookMetrics(registry: SharedRegistry): WebhookMetrics {
  const reviews = registry.counter(
    'ndots_webhook_reviews_total',
    'Pods reviewed, by source of the change.',
    ['because'],
  );
  const seconds = registry
    .histogram('ndots_webhook_review_duration_seconds', 'Duration of reviews.', [], defaultBuckets)
    .with();
  const refused = registry.counter(
    'ndots_webhook_refused_total',
    'Requests that were not admission reviews.',
    ['why'],
  );
  return {
    reviewed(because, took) {
      reviews.with(because).add(1);
      seconds.observe(took);
    },
    refused: (why) => refused.with(why).add(1),
  };
}
