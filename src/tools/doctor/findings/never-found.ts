/** Names whose lookups all end in NXDOMAIN, and the spelling that was probably meant. */
import { isCut } from '../../capture/pair/message-head.ts';
import type { SeenLookup } from '../../capture/pair/seen-exchange.ts';
import { failedContacts } from '../observe/failed-contacts.ts';
import {
  elsewhereText,
  foundElsewhere,
  isNeverFound,
  type FoundElsewhere,
} from '../observe/found-elsewhere.ts';
import type { Observations } from '../observe/observations.ts';
import type { Claims } from '../observe/claims.ts';
import { addressTypes, TYPE } from '../../../server/wire/iana.ts';
import { nearest } from '../../../server/base/problem.ts';
import { isForwarder } from '../observe/roles.ts';
import { isServiceConfig } from '../observe/service-config.ts';
import { absoluteName } from '../observe/absolute-name.ts';
import { blockListTest } from '../observe/block-lists.ts';
import { searchSteps } from '../observe/search-steps.ts';
import { strayCharacters } from '../observe/stray-characters.ts';
import { unknown, type Finding, type FindingKind, type FoundCause } from './finding.ts';
import { listed, sentence } from '../texts.ts';
import { MIN_CASES, MIN_QUERIES } from '../thresholds/evidence.ts';
import { MIN_DENIALS_OF_NO_HOST, MIN_SEARCHED_DOMAINS } from '../thresholds/search.ts';

const TITLE = 'Programs keep querying names that do not exist';
const TEST_TITLE = 'A test queries a name that is not meant to exist';
/** `_PORT._PROTOCOL.` and the Service. */
const SRV_NAME = /^(_[^.]+\._[^.]+)\.(.+)$/;
/** SERVICE.NAMESPACE.svc.DOMAIN, perhaps with a port name. */
const WHOLE_NAME = /^(?:_[^.]+\._[^.]+\.)?[^._][^.]*\.[^.]+\.svc\./;
/** An IPv4 address. */
const ADDRESS = /^\d{1,3}(?:\.\d{1,3}){3}\.$/;
/** Top-level domains that private networks use (RFC 6762, RFC 9476, and common practice). */
const PRIVATE = /\.[^.]+\.(?:local|internal|intranet|private|corp|lan|home|localdomain)\.$/;
/** Labels that DNS tests use in names that should not exist. */
const NOT_MEANT_TO_EXIST =
  /(?:^|[.-])(?:non-?exist(?:ent|ing)?|(?:does-?)?not-?exist(?:ent|ing)?|no-?such|nxdomain|invalid)(?:[.-]|\d|$)/;
/** A URL scheme, and a port or a path. */
const SCHEME = /^[a-z][a-z0-9+.-]*:\/\//;
const PORT_OR_PATH = /[:/]/;

/** A name that no lookup finds, or no lookup by the clients of one namespace. */
interface MissingName {
  /** As written, or in full. */
  readonly name: string;
  readonly failed: number;
  readonly type: number;
  /** Set if it exists in a namespace that these clients do not search. */
  readonly elsewhere?: FoundElsewhere;
}

/** The fault of a name, and its fix. */
interface Spelling
  extends
    Pick<Finding, 'title' | 'confidence' | 'why'>,
    Pick<FoundCause, 'seen' | 'fix'>,
    Partial<Pick<Finding, 'prove' | 'disproved'>> {}

/** Names whose lookups all fail, however few, with one finding for each kind of misspelling. */
export const neverFound: FindingKind = {
  code: 'ND2008',
  title: TITLE,
  name: 'queries for names that do not exist',
  inCapture(observed, claims) {
    // A host name with a port or a path cannot exist, so a few queries show the fault.
    const noHosts = notHostNames(observed, claims);
    if (observed.total.asked >= MIN_QUERIES) {
      const elsewhere = foundElsewhere(observed, claims).map((each): MissingName => ({
        name: each.name,
        failed: each.failed,
        type: TYPE.A,
        elsewhere: each,
      }));
      const first = [...noHosts, ...elsewhere];
      const known = new Set(first.map(({ name }) => name));
      const others = missingNames(observed, claims).filter(({ name }) => !known.has(name));
      return findingsOf(observed, [...first, ...others]);
    }
    return noHosts.length === 0 ? unknown('too few queries') : findingsOf(observed, noHosts);
  },
};

/** The queries of a lookup of the name, as the client sent them. */
function proofOf(missing: MissingName, lookups: readonly SeenLookup[]): string {
  const { name, type } = missing;
  const ofName = lookups.filter((lookup) =>
    [absoluteName(lookup.name), ...lookup.exchanges.map((each) => each.name)].includes(name),
  );
  const [sent = []] = ofName
    .map(({ exchanges }) => exchanges)
    .toSorted((one, other) => other.length - one.length);
  const server = sent[0]?.server.address ?? '';
  const names = [...new Set(sent.map((each) => each.name).filter((each) => !isCut(each)))];
  const [first = name, ...more] = names;
  const query = `ndots query ${first}${type === TYPE.SRV ? ' SRV' : ''}${server === '' ? '' : ` @${server}`}`;
  if (more.length === 0) return `run ${query}; it returns NXDOMAIN`;
  return `run ${query}, then the same for ${listed(more)}; all return NXDOMAIN`;
}

function findingsOf(
  observed: Observations,
  missing: readonly MissingName[],
): readonly FoundCause[] {
  const known = spellings(observed);
  const list = missing.map((each) => {
    const spelling: Spelling =
      (each.elsewhere === undefined ? null : elsewhereText(each.elsewhere)) ??
      aliasTarget(each, observed) ??
      spellingOf(each, known) ??
      unspelled(each);
    return { ...each, spelling };
  });
  // If connections fail after lookups, programs notice that rather than a missing name.
  const isBeside = failedContacts(observed).some(({ isOfDns }) => !isOfDns);
  return [...Map.groupBy(list, ({ spelling }) => spelling.title)].map(([title, all]) => {
    const isTest = title === TEST_TITLE;
    const keys = new Set(all.map(({ name }) => name));
    const [first] = all;
    const isOfThese = (name: string): boolean => keys.has(name) || keys.has(noHostName(name) ?? '');
    const clients = new Set(all.flatMap(({ elsewhere }) => [...(elsewhere?.clients ?? [])]));
    const lookups = observed.affected.filter(
      (lookup) =>
        (clients.size === 0 || clients.has(lookup.client)) &&
        (isOfThese(absoluteName(lookup.name)) ||
          lookup.exchanges.some(({ name }) => isOfThese(name))),
    );
    return {
      title,
      ...(title === TITLE ? {} : { subject: first!.name }),
      severity:
        all.some(({ name }) => noHostName(name) !== null) ||
        (isRepeated(lookups) && !isTest && !(title === TITLE && isBeside))
          ? 'warning'
          : 'info',
      confidence: Math.max(...all.map(({ spelling }) => spelling.confidence)),
      seen: [
        sentence(
          `Every lookup of these names ended in NXDOMAIN, even with every search domain appended: ${listed(all.map(({ name, failed, type }) => `${name}${type === TYPE.SRV ? ' SRV' : ''} (${failed} lookups)`))}`,
        ),
        ...new Set(all.flatMap(({ spelling }) => spelling.seen)),
      ],
      why: first!.spelling.why,
      fix: [...new Set(all.flatMap(({ spelling }) => spelling.fix))],
      prove: first!.spelling.prove ?? proofOf(first!, lookups),
      disproved:
        first!.spelling.disproved ??
        'the names exist in their zone (then the servers queried here give wrong answers)',
      exchanges: lookups.flatMap(({ exchanges }) => exchanges),
      affected: [...keys],
    };
  });
}

/**
 * Names with a port, a path or a scheme, none of whose queries found anything, whether or not a
 * search domain was appended.
 */
function notHostNames({ names }: Observations, claims: Claims): readonly MissingName[] {
  const views = names.list.filter(
    ({ name, type }) => addressTypes.includes(type) && noHostName(name) !== null,
  );
  return [...Map.groupBy(views, ({ name }) => noHostName(name)!)].flatMap(([name, all]) => {
    const denied = all.reduce((sum, { outcomes }) => sum + outcomes.nxdomain, 0);
    const isFound = all.some(({ outcomes }) => outcomes.found + outcomes.nodata > 0);
    if (isFound || denied < MIN_DENIALS_OF_NO_HOST || claims.names.has(name)) return [];
    // A lookup queries each of its names once for each type.
    const failed = Math.max(...all.map(({ outcomes }) => outcomes.asked));
    return [{ name, failed, type: TYPE.A }];
  });
}

/**
 * The text that a program looked up as a host name, without search domains, although it contains a port, a path or a
 * scheme. Null if it contains none of them.
 */
function noHostName(name: string): string | null {
  // The last label with such a character ends what the program wrote.
  const last = Math.max(name.lastIndexOf(':'), name.lastIndexOf('/'));
  if (last < 0) return null;
  const written = name.slice(0, name.indexOf('.', last) + 1);
  return hostOf(written) === written ? null : written;
}

/** The host in a text with a scheme, a port or a path, as an absolute name. */
function hostOf(written: string): string {
  return absoluteName(written.replace(SCHEME, '').split(PORT_OR_PATH, 1)[0]!);
}

/** True if one client keeps querying. Many clients that query once are just a busy cluster. */
function isRepeated(lookups: readonly SeenLookup[]): boolean {
  const byClient = Map.groupBy(lookups, ({ exchanges }) => exchanges[0]!.client.address);
  return [...byClient.values()].some((own) => own.length >= MIN_CASES);
}

function missingNames(observed: Observations, claims: Claims): readonly MissingName[] {
  const { failedLookups, names, domains } = observed;
  const steps = searchSteps(observed);
  const isOfList = blockListTest(names.list);
  const written = [...failedLookups.names.entries].flatMap(([name, { failed, found }]) => {
    const view = names.get(name, TYPE.A);
    const isMissing = view !== undefined && isNeverFound(view);
    // If a lookup's first step is found, only the full name is known.
    const isKnown = ['', ...domains.all].some((domain) => {
      const whole = name + domain;
      return claims.names.has(whole) || (names.get(whole, TYPE.A)?.outcomes.found ?? 0) > 0;
    });
    // Names such as `_ta-4f66.` (RFC 8145) are queried whether they exist or not.
    const isOptional = name.startsWith('_') || domains.domainOf(name) !== null;
    const isOpen = isMissing && !isKnown && !isOptional;
    if (!isOpen || isOfList(absoluteName(name)) || steps.isStep(name) || steps.isPart(name))
      return [];
    const isFailing = failed >= MIN_CASES || isDeniedEverywhere(name, observed);
    return isFailing && found === 0 ? { name, failed, type: TYPE.A } : [];
  });
  const whole = names.list.flatMap((view): MissingName[] => {
    const { name, type, outcomes } = view;
    if (type !== TYPE.A && type !== TYPE.SRV) return [];
    if (!isNeverFound(view) || !domains.isOfCluster(name) || !WHOLE_NAME.test(name)) return [];
    if (claims.names.has(name) || isServiceConfig(name, type) || steps.isStep(name)) return [];
    return [{ name, failed: outcomes.nxdomain, type }];
  });
  return [...written, ...whole];
}

/**
 * True if the name with each search domain is denied again and again. If one lookup’s queries go to several DNS pods, a
 * capture at one of them contains hardly any whole lookup.
 */
function isDeniedEverywhere(name: string, { names, domains }: Observations): boolean {
  const views = [...domains.all].flatMap((domain) => names.get(name + domain, TYPE.A) ?? []);
  return views.length >= MIN_SEARCHED_DOMAINS && views.every(isNeverFound);
}

/** The names that are found, as written and in full. */
interface FoundNames {
  readonly written: readonly string[];
  readonly addresses: readonly string[];
  readonly services: readonly string[];
  /** Names that the root denies. */
  readonly rootless: ReadonlySet<string>;
}

function spellings({ names, failedLookups, replyFaults }: Observations): FoundNames {
  const found = names.list.filter(({ outcomes }) => outcomes.found > 0);
  const of = (...types: number[]): string[] =>
    found.flatMap(({ name, type }) => (types.includes(type) ? name : []));
  return {
    written: [...failedLookups.names.entries].flatMap(([name, each]) =>
      each.found > 0 ? name : [],
    ),
    addresses: [...new Set(of(TYPE.A, TYPE.AAAA))],
    services: of(TYPE.SRV),
    rootless: new Set(replyFaults.rootDenials.list.map(({ name }) => name)),
  };
}

/**
 * An address that only DNS servers query as a name, as they do when they follow an alias; null:
 * another name, or programs query it as well.
 */
function aliasTarget({ name }: MissingName, observed: Observations): Spelling | null {
  if (!ADDRESS.test(name)) return null;
  const clients = new Set(
    observed.affected.flatMap(({ client, exchanges }) =>
      exchanges.some((each) => each.name === name) ? client : [],
    ),
  );
  if (clients.size === 0 || ![...clients].every((client) => isForwarder(observed, client)))
    return null;
  return {
    title: 'A DNS server looks up an IP address as if it were a host name',
    confidence: 0.85,
    seen: [
      `Only ${listed([...clients])} ${clients.size === 1 ? 'queries' : 'query'} it, and ${clients.size === 1 ? 'that is a DNS server' : 'those are DNS servers'}.`,
    ],
    why: 'A DNS server queries such a name for its clients. Most likely it follows a CNAME record whose target is an address, as a Service of type ExternalName with an address has. Otherwise, a program looks up the text as a name. The lookup fails for every client.',
    fix: [
      `Find the Service whose spec.externalName is ${name.slice(0, -1)} (kubectl get services -A). Use a Service without a selector and with an EndpointSlice for that address instead.`,
      'If there is none, capture at the DNS server’s clients, to find the program or the CNAME record.',
    ],
  };
}

/** Null if the capture contains no similar name that is found. */
function spellingOf({ name, type }: MissingName, known: FoundNames): Spelling | null {
  const host = hostOf(name);
  if (host !== name) {
    const right = known.addresses.find((each) => each.startsWith(host));
    return {
      title: 'A program looks up a host name that contains a port, a path or a scheme',
      confidence: 0.93,
      seen: [
        `${name} is not a host name, but ${host} is.`,
        right !== undefined && sentence(`The capture contains an address for ${right}`),
      ],
      why: 'A setting of the program contains HOST:PORT or a URL where only a host is expected, and the program looks up the whole string. DNS is not at fault.',
      fix: [
        `Set the host to ${host} in the configuration or environment of these programs, and set the port separately.`,
      ],
    };
  }
  if (ADDRESS.test(name))
    return {
      title: 'A program looks up an IP address as if it were a host name',
      confidence: 0.93,
      seen: [`${name.slice(0, -1)} is an address and does not need a lookup.`],
      why: 'Resolvers do not query text that is an address. Either this program builds its own DNS queries, or the address is malformed (a number above 255, a space after it), so resolvers treat it as a name. DNS is not at fault.',
      fix: [
        `Correct ${name.slice(0, -1)} in these programs’ configuration, or disable the program’s own resolver.`,
      ],
    };
  const stray = strayOf(name);
  if (stray !== null) return stray(known);
  const [, port, service] = type === TYPE.SRV ? (SRV_NAME.exec(name) ?? []) : [];
  if (service !== undefined) {
    const right = known.services.filter((each) => each.endsWith(`.${service}`));
    const isThere = known.addresses.includes(service);
    return {
      title: 'A program queries an SRV record for a port name that the Service does not have',
      confidence: right.length > 0 ? 0.95 : isThere ? 0.88 : 0.8,
      seen: [
        right.length > 0 &&
          sentence(`Other queries for the same Service are answered: ${listed(right)}`),
        isThere && sentence(`There is an address for ${service}`),
      ],
      why: 'The first two labels of an SRV name are the name and protocol of a Service port. If the port has no name, or a different name or protocol, the record does not exist, and the answer is always NXDOMAIN.',
      fix: [
        right.length > 0
          ? `Query ${listed(right)} instead, or rename the Service’s port to ${port!.slice(1, port!.indexOf('.'))}.`
          : `Compare ${port} with the name and protocol of each port of ${service} (spec.ports in kubectl get services -A -o yaml).`,
      ],
    };
  }
  if (known.rootless.has(name) && PRIVATE.test(name)) return ofPrivateZone(name);
  const right = nearest(name, known.written) ?? nearest(name, known.addresses);
  if (right === null) return null;
  return {
    ...unspelled({ name }),
    confidence: 0.85,
    seen: [sentence(`A similar name is found: ${right}`)],
    fix: [`Correct ${name}; it was probably meant to be ${right}`],
  };
}

/** A name in a private zone that went to the root, because the server has no stub zone for it. */
function ofPrivateZone(name: string): Spelling {
  const zone = name.split('.').slice(-3).join('.');
  return {
    title:
      'Names in a private domain go to a resolver that does not know it, because a stub zone is missing',
    confidence: 0.86,
    seen: [
      sentence(
        `The denials carry the root’s SOA record, so the query went to the internet although its name is in ${zone}`,
      ),
    ],
    why: `${zone} is a private domain. Only the company’s name servers have it, and the cluster’s DNS (or its upstream) does not forward it to them. The root answers NXDOMAIN, so each lookup fails.`,
    fix: [
      `Forward the domain with a block ${zone.slice(0, -1)}:53 { forward . COMPANY-DNS } in the Corefile, or with a conditional forwarder in the upstream.`,
      'If another pod gets an address for these names, compare the servers that both pods query.',
    ],
    prove: `run ndots query ${name} @COMPANY-DNS, which returns the record, then ndots query ${name} at the DNS Service, which returns NXDOMAIN`,
    disproved:
      'the company’s name servers deny the name, too (then it is misspelled or was deleted)',
  };
}

/** Null if it could be a host name. */
function strayOf(name: string): ((known: FoundNames) => Spelling) | null {
  const found = strayCharacters(name);
  if (found === null) return null;
  const { what, where, meant, isTemplate } = found;
  const shown = name.slice(0, -1);
  return ({ addresses }) => {
    const right = meant === null ? undefined : addresses.find((each) => each.startsWith(meant));
    return {
      title: 'A program looks up a name that contains a stray character (line feed, space, quote)',
      confidence: 0.94,
      seen: [
        `${shown} contains ${what}${where}, which is not allowed in a host name.`,
        right !== undefined && sentence(`The name without it exists: ${right}`),
      ],
      why: isTemplate
        ? 'A variable or template in the program’s configuration was not replaced, so the program looks up the literal text. DNS is not at fault.'
        : 'One of the program’s settings (environment variable, Secret, ConfigMap, file) contains the character, and the program looks up the whole text. A Secret created with echo instead of echo -n ends in a line feed, and a value copied with its quotes keeps them. DNS is not at fault.',
      fix: [
        isTemplate
          ? `Find where ${shown} is set, and define the variable.`
          : `Remove the character where the host${meant === null ? '' : ` (${meant.slice(0, -1)})`} is set. In a Secret, kubectl get secret NAME -o jsonpath='{.data.KEY}' | base64 -d | od -c shows it. Create Secrets with echo -n or stringData, and recreate the pods.`,
      ],
    };
  };
}

function unspelled({ name }: Pick<MissingName, 'name'>): Spelling {
  if (NOT_MEANT_TO_EXIST.test(name))
    return {
      title: TEST_TITLE,
      confidence: 0.7,
      seen: [],
      why: 'By its name, this is a test of DNS that expects NXDOMAIN.',
      fix: [`If ${name} should exist, create it. Otherwise, nothing is wrong.`],
    };
  return {
    title: TITLE,
    confidence: 0.8,
    seen: [],
    why: 'A name or its namespace is misspelled, or the Service or record was deleted or does not exist yet. The program’s lookups fail every time.',
    fix: [`Correct ${name}, or create the Service or record (kubectl get services -A).`],
  };
}
