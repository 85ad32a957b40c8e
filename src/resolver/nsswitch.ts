/**
 * The `hosts:` line of nsswitch.conf: which services answer a host lookup, in which order, and what each outcome
 * leads to.
 */
import type { GlibcTraits } from './glibc-releases.ts';
import { linesOf } from './resolv-conf.ts';

/** How a service of nsswitch.conf can end. */
export type Status = 'success' | 'notfound' | 'unavail' | 'tryagain';
/** What an outcome leads to. */
export type Action = 'return' | 'continue' | 'merge';

/** One service of the `hosts:` line. */
export interface Service {
  readonly name: string;
  readonly actions: Readonly<Record<Status, Action>>;
  /** What stood in brackets after the service; empty if nothing. */
  readonly criteria: string;
}

const defaultActions: Readonly<Record<Status, Action>> = {
  success: 'return',
  notfound: 'continue',
  unavail: 'continue',
  tryagain: 'continue',
};

/** The `hosts:` line as it was understood. */
export interface HostsLine {
  readonly services: readonly Service[];
  /** 0 = not in the file: the default. */
  readonly line: number;
  /** Why the file could not be used; null = it could. */
  readonly problem: string | null;
}

/**
 * Reads the services as glibc does: the last `hosts:` line wins, and what follows a `#` in it is taken for services.
 * A line that cannot be read spoils the whole file: no service is left. Before 2.33 a comment was one, an error ended
 * the line, and a line without services left the default.
 */
export function readHostsLine(
  text: string | null,
  { defaultServices, oldNsswitch }: GlibcTraits,
): HostsLine {
  const fallback = { services: readServices(defaultServices).services, problem: null };
  let result: HostsLine = { ...fallback, line: 0 };
  for (const [index, line] of linesOf(text).entries()) {
    const bare = oldNsswitch ? line.split('#', 1)[0]! : line;
    const match = /^\s*([^\s:]+)[\s:]+([^\s:].*)?$/s.exec(bare);
    if (match?.[1] !== 'hosts') continue;
    const { services, broken } = readServices(match[2] ?? '');
    if (oldNsswitch && services.length === 0) {
      result = { ...fallback, line: index + 1 };
      continue;
    }
    if (broken && !oldNsswitch) {
      const problem = `line ${index + 1}: unclosed or malformed [criteria]`;
      return { services: [], line: index + 1, problem };
    }
    result = { services, line: index + 1, problem: null };
  }
  return result;
}

/** The services up to the first error. */
function readServices(text: string): { readonly services: Service[]; readonly broken: boolean } {
  const services: Service[] = [];
  let rest = text.trim();
  while (rest !== '') {
    const name = /^[^\s[]+/.exec(rest)?.[0];
    if (name === undefined) return { services, broken: true };
    rest = rest.slice(name.length).trimStart();
    let actions = defaultActions;
    let criteria = '';
    if (rest.startsWith('[')) {
      const close = rest.indexOf(']');
      if (close < 0) return { services, broken: true };
      criteria = rest.slice(1, close).trim();
      const read = readCriteria(criteria);
      if (read === null) return { services, broken: true };
      actions = read;
      rest = rest.slice(close + 1).trimStart();
    }
    services.push({ name, actions, criteria });
  }
  return { services, broken: false };
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
