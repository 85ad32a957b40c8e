/**
 * Reads the `hosts:` line in nsswitch.conf, which lists the services that resolve host names, their order, and how to
 * handle each result.
 */
import type { GlibcTraits } from './glibc-releases.ts';
import { linesOf } from './resolv-conf.ts';

/** The possible results of an nsswitch.conf service. */
export type Status = 'success' | 'notfound' | 'unavail' | 'tryagain';
export type NsswitchAction = 'return' | 'continue' | 'merge';

export interface NsswitchService {
  readonly name: string;
  readonly actions: Readonly<Record<Status, NsswitchAction>>;
}

const defaultActions: Readonly<Record<Status, NsswitchAction>> = {
  success: 'return',
  notfound: 'continue',
  unavail: 'continue',
  tryagain: 'continue',
};

export interface HostsLine {
  readonly services: readonly NsswitchService[];
  /** Null: the file is usable. */
  readonly problem: string | null;
}

/**
 * Parses the services like glibc. The last `hosts:` line wins, and text after a `#` in it counts as services. A line
 * with a syntax error invalidates the whole file, leaving no services. Before 2.33, comments were removed, an error
 * ended only its line, and a line without services left the default in place.
 */
export function readHostsLine(
  text: string | null,
  { defaultServices, oldNsswitch }: GlibcTraits,
): HostsLine {
  const fallback = { services: readServices(defaultServices).services, problem: null };
  let result: HostsLine = fallback;
  for (const [index, line] of linesOf(text).entries()) {
    const bare = oldNsswitch ? line.split('#', 1)[0]! : line;
    const match = /^\s*([^\s:]+)[\s:]+([^\s:].*)?$/s.exec(bare);
    if (match?.[1] !== 'hosts') continue;
    const { services, broken } = readServices(match[2] ?? '');
    if (broken && !oldNsswitch) {
      return { services: [], problem: `line ${index + 1}: unclosed or malformed [criteria]` };
    }
    result = oldNsswitch && services.length === 0 ? fallback : { services, problem: null };
  }
  return result;
}

function readServices(text: string): {
  readonly services: NsswitchService[];
  readonly broken: boolean;
} {
  const services: NsswitchService[] = [];
  let rest = text.trim();
  while (rest !== '') {
    const name = /^[^\s[]+/.exec(rest)?.[0];
    if (name === undefined) return { services, broken: true };
    rest = rest.slice(name.length).trimStart();
    let actions = defaultActions;
    if (rest.startsWith('[')) {
      const close = rest.indexOf(']');
      if (close < 0) return { services, broken: true };
      const read = readCriteria(rest.slice(1, close));
      if (read === null) return { services, broken: true };
      actions = read;
      rest = rest.slice(close + 1).trimStart();
    }
    services.push({ name, actions });
  }
  return { services, broken: false };
}

function readCriteria(text: string): Readonly<Record<Status, NsswitchAction>> | null {
  const actions = { ...defaultActions };
  for (const word of text.split(/\s+/).filter((part) => part !== '')) {
    const match = /^(!?)(success|notfound|unavail|tryagain)=(return|continue|merge)$/i.exec(word);
    if (match === null) return null;
    const status = (match[2] ?? '').toLowerCase() as Status;
    const action = (match[3] ?? '').toLowerCase() as NsswitchAction;
    for (const other of Object.keys(actions) as Status[]) {
      if ((other === status) === (match[1] === '')) actions[other] = action;
    }
  }
  return actions;
}
