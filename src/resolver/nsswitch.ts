/**
 * The `hosts:` line of nsswitch.conf: which services answer a host lookup, in which order, and what each outcome
 * leads to. Without the file or the line glibc uses `files dns` (since 2.34).
 */
import { linesOf } from './resolv-conf.ts';

export type Status = 'success' | 'notfound' | 'unavail' | 'tryagain';
export type Action = 'return' | 'continue' | 'merge';

export interface Service {
  readonly name: string;
  readonly actions: Readonly<Record<Status, Action>>;
  /** What stood in brackets after the service; empty if nothing. */
  readonly criteria: string;
}

export const defaultActions: Readonly<Record<Status, Action>> = {
  success: 'return',
  notfound: 'continue',
  unavail: 'continue',
  tryagain: 'continue',
};

export interface HostsLine {
  readonly services: readonly Service[];
  /** 0 = not in the file: the default. */
  readonly line: number;
  /** Why the file could not be used; null = it could. */
  readonly problem: string | null;
}

const fallback: HostsLine = {
  services: ['files', 'dns'].map((name) => ({ name, actions: defaultActions, criteria: '' })),
  line: 0,
  problem: null,
};

/**
 * Reads the services as glibc does: the last `hosts:` line wins, and what follows a `#` in it is taken for services.
 * A line that cannot be read spoils the whole file: no service is left.
 */
export function readHostsLine(text: string | null): HostsLine {
  let result = fallback;
  for (const [index, line] of linesOf(text).entries()) {
    const match = /^\s*([^\s:]+)[\s:]+([^\s:].*)?$/s.exec(line);
    if (match?.[1] !== 'hosts') continue;
    const services = readServices(match[2] ?? '');
    if (services === null) {
      const problem = `line ${index + 1}: unclosed or malformed [criteria]`;
      return { services: [], line: index + 1, problem };
    }
    result = { services, line: index + 1, problem: null };
  }
  return result;
}

function readServices(text: string): Service[] | null {
  const services: Service[] = [];
  let rest = text.trim();
  while (rest !== '') {
    const name = /^[^\s[]+/.exec(rest)?.[0];
    if (name === undefined) return null;
    rest = rest.slice(name.length).trimStart();
    let actions = defaultActions;
    let criteria = '';
    if (rest.startsWith('[')) {
      const close = rest.indexOf(']');
      if (close < 0) return null;
      criteria = rest.slice(1, close).trim();
      const read = readCriteria(criteria);
      if (read === null) return null;
      actions = read;
      rest = rest.slice(close + 1).trimStart();
    }
    services.push({ name, actions, criteria });
  }
  return services;
}

function readCriteria(text: string): Readonly<Record<Status, Action>> | null {
  const actions = { ...defaultActions };
  for (const word of text.split(/\s+/).filter((part) => part !== '')) {
    const match = /^(!?)(success|notfound|unavail|tryagain)=(return|continue|merge)$/i.exec(word);
    if (match === null) return null;
    const status = (match[2] ?? '').toLowerCase() as Status;
    const action = (match[3] ?? '').toLowerCase() as Action;
    for (const other of Object.keys(actions) as Status[]) {
      if ((other === status) === (match[1] === '')) actions[other] = action;
    }
  }
  return actions;
}
