/**
 * Predicts replies for search path candidates: those captured, those implied by the services, or those DNS requires.
 */
import { parseResourceName } from '../../../tools/pods/resource-name.ts';
import type { PodSource } from '../../../tools/pods/pod-source.ts';
import { emptyScript, type AnswerRule, type Script } from '../../../tools/resolver/answers-file.ts';
import { seenAnswers } from '../../../tools/resolver/seen-answers.ts';
import type { SeenNames } from './plan-names.ts';
import { clusterNotAsked } from '../../../tools/pods/not-asked.ts';

/** `web-0.web.shop`: endpoint, service and namespace. */
const ENDPOINT_LABELS = 3;

/** Top-level domains that are unlikely to be namespace names, unlike `dev`, `io` and `app`. */
const WORLD: ReadonlySet<string> = new Set('arpa biz com edu gov info int mil net org'.split(' '));

export class NameFacts {
  readonly #seen: SeenNames;
  readonly #source: PodSource | null;
  readonly #domain: string;
  /** Services listed so far, by namespace. */
  readonly #services = new Map<string, Promise<ReadonlySet<string>>>();
  /** Each name gets a different address, which identifies the name that was found. */
  readonly #numbers = new Map<string, number>();

  /**
   * @param source lists services; null if there is none
   * @param domain the cluster domain, without a trailing dot
   */
  constructor(seen: SeenNames, source: PodSource | null, domain: string) {
    this.#seen = seen;
    this.#source = source;
    this.#domain = `.${domain}.`;
  }

  /**
   * The simulated network for looking up this name.
   * @param listed true for names in a list, for which there are no captured replies
   */
  async scriptFor(name: string, search: readonly string[], listed: boolean): Promise<Script> {
    const plain = `${name.toLowerCase().replace(/\.$/, '')}.`;
    const candidates = search.map(
      (domain) => `${plain}${domain.toLowerCase().replace(/\.$/, '')}.`,
    );
    const rules: AnswerRule[] = [];
    for (const candidate of candidates) rules.push(...(await this.#rulesFor(candidate)));
    const own = await this.#rulesFor(plain);
    // A listed name that is not a service is external.
    const outside =
      listed && rules.length === 0 && own.length === 0 && this.#isOutside(plain)
        ? this.#found(plain, true, true)
        : own;
    return { ...emptyScript, rules: [...rules, ...outside] };
  }

  /**
   * True if replies are guesses because the name was not captured and, for lack of a service list, might be a service.
   */
  isAssumed(name: string, listed: boolean): boolean {
    const labels = name.replace(/\.$/, '').toLowerCase().split('.');
    return (
      listed &&
      this.#source === null &&
      !name.endsWith('.') &&
      labels.length > 1 &&
      (labels.length <= ENDPOINT_LABELS || labels.at(-1) === 'svc') &&
      !WORLD.has(labels.at(-1)!) &&
      !this.#seen.names.has(`${labels.join('.')}.`)
    );
  }

  async #rulesFor(name: string): Promise<readonly AnswerRule[]> {
    const seen = this.#seen.names.get(name);
    if (seen !== undefined)
      return seen.exists ? this.#found(name, seen.a ?? true, seen.aaaa ?? false) : [];
    return (await this.#isService(name)) ? this.#found(name, true, false) : [];
  }

  #found(name: string, a: boolean, aaaa: boolean): readonly AnswerRule[] {
    const number = this.#numbers.get(name) ?? this.#numbers.size + 1;
    this.#numbers.set(name, number);
    return seenAnswers(name, number, { a, aaaa });
  }

  /** True if the name has a dot and is not in the cluster domain. */
  #isOutside(name: string): boolean {
    return name.slice(0, -1).includes('.') && !name.endsWith(this.#domain);
  }

  /** `SVC.NS.svc.ZONE`, or an endpoint of such a service. */
  async #isService(name: string): Promise<boolean> {
    if (this.#source === null || !name.endsWith(this.#domain)) return false;
    const labels = name.slice(0, -this.#domain.length).split('.');
    const [kind, namespace, service] = [labels.at(-1), labels.at(-2), labels.at(-3)];
    if (kind !== 'svc' || namespace === undefined || service === undefined) return false;
    return labels.length <= 4 && (await this.#servicesOf(this.#source, namespace)).has(service);
  }

  #servicesOf(source: PodSource, namespace: string): Promise<ReadonlySet<string>> {
    let services = this.#services.get(namespace);
    if (services === undefined) {
      services = listServices(source, namespace);
      this.#services.set(namespace, services);
    }
    return services;
  }
}

async function listServices(source: PodSource, namespace: string): Promise<ReadonlySet<string>> {
  try {
    return new Set(await source.names(parseResourceName('svc/any').of, namespace));
  } catch (error) {
    const failure = error as Error;
    throw clusterNotAsked(failure, {
      text: `the services in ${namespace} cannot be listed: ${failure.message}`,
      remedy: `kubectl -n ${namespace} get services`,
    });
  }
}
