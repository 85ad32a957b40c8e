/** YAML parameter types for checks, such as names, record types and servers. */
import { parseHostPort } from '../../server/base/ip.ts';
import { didYouMean } from '../../server/base/problem.ts';
import {
  keyOf,
  oneOrMore,
  optional,
  simple,
  type YamlField,
  type YamlShape,
} from '../../server/kube/manifests/yaml-shape.ts';
import { TYPE, typeNumber } from '../../server/wire/iana.ts';
import { parseName } from '../../server/wire/name.ts';
import type { ProbeServer } from './network.ts';

/** A name as applications write it. If there is no trailing dot, the search path applies. */
export const spelledName: YamlShape<string> = simple('NAME', 'a domain name', '', (value) => {
  if (typeof value !== 'string' || value === '') return null;
  try {
    parseName(absolute(value));
    return value;
  } catch {
    return null;
  }
});

/** A domain name, parsed into an absolute name with a trailing dot. */
export const domainName: YamlShape<string> = {
  placeholder: 'NAME',
  read: (value, path, reading) => absolute(spelledName.read(value, path, reading)),
};

function absolute(name: string): string {
  return name.endsWith('.') ? name : `${name}.`;
}

/** A name that every cluster has. */
export const KNOWN_NAME = 'kubernetes.default.svc.cluster.local.';

/** A record type, parsed to its number. */
const recordType: YamlShape<number> = {
  placeholder: 'TYPE',
  read(value, path, reading) {
    const type = typeof value === 'string' ? typeNumber(value.toUpperCase()) : null;
    if (type !== null) return type;
    reading.tell(
      path,
      `"${keyOf(path)}" must be a type such as A`,
      didYouMean(String(value), ['A', 'AAAA', 'SRV', 'PTR', 'TXT', 'MX', 'NS', 'SOA']),
    );
    return 0;
  },
};

/** The parameters of checks that send one question. */
export const askedName: YamlField<string> = optional(domainName, KNOWN_NAME, 'what is asked');
export const askedType: YamlField<number> = optional(recordType, TYPE.A, 'type of records');

/** The parameter of checks that compare the answers for several names. */
export const comparedNames: YamlField<readonly string[]> = optional(
  several(domainName),
  [KNOWN_NAME],
  'names to compare',
);

/** An address with an optional port. */
export const serverAddress: YamlShape<ProbeServer> = simple(
  'IP[:PORT]',
  'an IP address, or one with a port',
  { host: '', port: 0 },
  (value) => (typeof value === 'string' ? readServer(value) : null),
);

/** `10.96.0.10`, `10.96.0.10:5353`, `[fd00::10]:53`; null: anything else. */
export function readServer(text: string): ProbeServer | null {
  const found = parseHostPort(text);
  return found === null || found.port === 0 ? null : { host: found.host, port: found.port ?? 53 };
}

/** A list of values, or a single value on its own. Duplicates are removed. */
export function several<T>(shape: YamlShape<T>): YamlShape<readonly T[]> {
  const list = oneOrMore(shape);
  return {
    placeholder: list.placeholder,
    read(value, path, reading) {
      const read = list.read(value, path, reading);
      if (Array.isArray(value) && value.length === 0)
        reading.tell(path, `"${keyOf(path)}" needs at least one value`);
      return [...new Map(read.map((each) => [JSON.stringify(each), each])).values()];
    },
  };
}
