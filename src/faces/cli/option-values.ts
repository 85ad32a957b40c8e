/** Types of option values. */
import { parseAddress, parseHostPort, splitHostPort } from '../../server/base/ip.ts';
import { didYouMean, Problem } from '../../server/base/problem.ts';
import type { OptionValue, Offers } from './option.ts';

/** Invalid command line: exit code 3. */
export function usage(text: string, hint?: string): Problem {
  return new Problem({ code: 'usage', text, hint });
}

/**
 * The action that a command's first word names.
 * @param given empty if there is none
 * @throws Problem (`usage`)
 */
export function readAction<const T extends string>(given: string, actions: readonly T[]): T {
  const action = actions.find((each) => each === given);
  if (action !== undefined) return action;
  throw usage(
    given === '' ? 'which action?' : `there is no action "${given}"`,
    didYouMean(given, actions, `Known: ${actions.join(', ')}`),
  );
}

export function text(placeholder: string, offers?: Offers): OptionValue<string> {
  return { placeholder, read: (given) => given, ...(offers === undefined ? {} : { offers }) };
}

/** A file or a directory. */
export function file(placeholder = 'FILE'): OptionValue<string> {
  return text(placeholder, { files: true });
}

/** A namespace name, which the API server requires to be a lowercase DNS label (RFC 1123). */
export const namespaceName: OptionValue<string> = {
  placeholder: 'NAME',
  read(given, name) {
    if (/^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/.test(given)) return given;
    throw usage(`${name} takes the name of a namespace, not "${given}"`, 'Example: kube-system');
  },
};

/** A node name, which the API server requires to be a DNS subdomain in lower case (RFC 1123). */
export const nodeName: OptionValue<string> = {
  placeholder: 'NAME',
  read(given, name) {
    if (given.length <= 253 && /^[a-z0-9](?:[-.a-z0-9]*[a-z0-9])?$/.test(given)) return given;
    throw usage(
      `${name} takes the name of a node, not "${given}"`,
      `For several nodes: ${name} node1 ${name} node2`,
    );
  },
};

/** A label selector, whose syntax the API server checks. It would accept an empty one, which selects everything. */
export const labelSelector: OptionValue<string> = {
  placeholder: 'LABELS',
  read(given, name) {
    if (given.trim() !== '') return given;
    throw usage(`${name} takes labels, such as k8s-app=kube-dns, not "${given}"`);
  },
};

/** An integer within inclusive bounds. */
export function integer(placeholder: string, least: number, most: number): OptionValue<number> {
  return { placeholder, read: (given, name) => readInteger(name, given, least, most) };
}

/** @param name the option or word as the user wrote it */
export function readInteger(name: string, given: string, least: number, most: number): number {
  if (/^\d{1,10}$/.test(given) && Number(given) >= least && Number(given) <= most)
    return Number(given);
  throw usage(`${name} takes a whole number from ${least} to ${most}, not "${given}"`);
}

export function choice<const T extends string>(
  placeholder: string,
  words: readonly T[],
): OptionValue<T> {
  return {
    placeholder,
    offers: { words },
    read(given, name) {
      const found = words.find((word) => word === given);
      if (found !== undefined) return found;
      throw usage(`${name} takes ${listed(words)}, not "${given}"`, didYouMean(given, words));
    },
  };
}

/**
 * Parses a server address such as `10.96.0.10`, `10.96.0.10:1053` or `[fd00::a]:53`. Also accepts `#` instead of the
 * colon, like dig. The port is null if not given.
 */
export function readServer(given: string): {
  readonly server: string;
  readonly port: number | null;
} {
  const found = parseHostPort(given.replace(/^(\[[^\]]+\]|[^:#]+)#(\d+)$/, '$1:$2'));
  if (found === null || found.port === 0)
    throw usage(
      `"${given}" is not an IP address, with or without a port`,
      'Example: 10.96.0.10, 10.96.0.10:1053, [fd00::a]:53',
    );
  return { server: found.host, port: found.port };
}

/**
 * An address to listen on, where `:9154` means all IPv4 addresses.
 * @param usual the default port
 */
export const listenAddress = (
  usual: number,
): OptionValue<{ readonly host: string; readonly port: number }> => ({
  placeholder: '[IP]:PORT',
  read(given) {
    const { server, port } = readServer(/^:\d/.test(given) ? `0.0.0.0${given}` : given);
    return { host: server, port: port ?? usual };
  },
});

/** A server given by name or address: `dns.example`, `10.0.0.7:9154` or `[fd00::7]:9154`. */
export const hostAddress = (
  usual: number,
): OptionValue<{ readonly host: string; readonly port: number }> => ({
  placeholder: 'HOST[:PORT]',
  read(given, name) {
    const { host = '', port = null } = splitHostPort(given) ?? {};
    if (host === '' || (port ?? 0) > 65_535)
      throw usage(`${name} takes HOST, HOST:PORT or [IPV6]:PORT, not "${given}"`);
    return { host, port: port ?? usual };
  },
});

/** Comma-separated IP addresses. */
export const addresses: OptionValue<readonly string[]> = {
  placeholder: 'IP,…',
  read(given, name) {
    const list = given.split(',').filter((word) => word !== '');
    const wrong = list.find((word) => parseAddress(word) === null);
    if (wrong === undefined && list.length > 0) return list;
    throw usage(`${name} takes IP addresses, not "${wrong ?? ''}"`);
  },
};

/** `NAME=VALUE`. */
export const pair: OptionValue<readonly [string, string]> = {
  placeholder: 'NAME=VALUE',
  read(given, name) {
    const equals = given.indexOf('=');
    if (equals < 1) throw usage(`${name} takes NAME=VALUE, not "${given}"`);
    return [given.slice(0, equals), given.slice(equals + 1)];
  },
};

const unitMs = { h: 3_600_000, m: 60_000, s: 1000, ms: 1 } as const;
const units = Object.keys(unitMs) as (keyof typeof unitMs)[];

/** `5`, `5s`, `500ms`, `1m`, `2h` as milliseconds. */
export function duration(least: number, most: number): OptionValue<number> {
  return {
    placeholder: 'TIME',
    read(given, name) {
      const [, number, unit = 's'] = /^(\d{1,9}(?:\.\d{1,3})?)(ms|s|m|h)?$/.exec(given) ?? [];
      if (number === undefined)
        throw usage(`${name} takes a time such as 5s, 500ms or 2m, not "${given}"`);
      const ms = Number(number) * unitMs[unit as keyof typeof unitMs];
      if (ms >= least && ms <= most) return ms;
      throw usage(
        `${name} takes a time from ${printWhole(least)} to ${printWhole(most)}, not "${given}"`,
      );
    },
  };
}

/** Prints a time in the largest unit that makes it a whole number: `90s`, `24h`. */
function printWhole(ms: number): string {
  const unit = units.find((each) => ms % unitMs[each] === 0) ?? 'ms';
  return `${ms / unitMs[unit]}${unit}`;
}

export function listed(words: readonly string[]): string {
  return words.length < 2
    ? (words[0] ?? '')
    : `${words.slice(0, -1).join(', ')} or ${words.at(-1) ?? ''}`;
}
