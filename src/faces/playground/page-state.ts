/** The page's inputs as signals, which are stored in its address. */
import { effect, signal, type Signal } from '@preact/signals-core';
import { HASH_MAX, parseHash, printHash } from '../web/hash-state.ts';
import { examples } from './examples.ts';

export type PageName = 'lookup' | 'corefile' | 'diff' | 'capture';

const pageNames: readonly PageName[] = ['lookup', 'corefile', 'diff', 'capture'];

export const page: Signal<PageName> = signal('lookup');

/** Inputs for each page, by their names in the address. */
export interface PageInputs {
  readonly lookup: {
    readonly name: Signal<string>;
    readonly resolv: Signal<string>;
    readonly answers: Signal<string>;
    /** `yes` if the example cluster answers, otherwise `no`. */
    readonly cluster: Signal<string>;
    /** `four` or `all`. */
    readonly clients: Signal<string>;
    /** The query type; empty: both. */
    readonly type: Signal<string>;
  };
  readonly corefile: { readonly corefile: Signal<string> };
  readonly diff: { readonly before: Signal<string>; readonly after: Signal<string> };
  readonly capture: Readonly<Record<string, Signal<string>>>;
}

export const inputs: PageInputs = {
  lookup: {
    name: signal(examples.name),
    resolv: signal(examples.resolvConf),
    answers: signal(examples.answers),
    cluster: signal('yes'),
    clients: signal('four'),
    type: signal(''),
  },
  corefile: { corefile: signal(examples.corefile) },
  diff: { before: signal(examples.before), after: signal(examples.after) },
  capture: {},
};

/** Default values for inputs that the address omits. */
const initial = new Map<Signal<string>, string>(
  Object.values(inputs).flatMap((each) =>
    Object.values<Signal<string>>(each).map((input) => [input, input.value] as const),
  ),
);

/** True if the inputs are too long for an address. */
export const tooLong: Signal<boolean> = signal(false);

function readAddress(): void {
  const { page: named, parameters } = parseHash(location.hash);
  const known = pageNames.find((name) => name === named);
  if (known === undefined) {
    // This was a link within the page, such as the skip link, so restore the address.
    if (named !== '') history.replaceState(null, '', hashOf(page.value));
    return;
  }
  page.value = known;
  for (const [name, input] of Object.entries<Signal<string>>(inputs[known])) {
    const given = parameters.get(name);
    input.value = given ?? initial.get(input)!;
  }
}

/** The part of the address after `#`. */
function hashOf(name: PageName): string {
  const given = Object.entries<Signal<string>>(inputs[name]).flatMap(([key, input]) =>
    input.value === initial.get(input) ? [] : [[key, input.value] as const],
  );
  return printHash({ page: name, parameters: new Map(given) });
}

/** Milliseconds between an edit and the address update. */
const WRITE_MS = 300;

export function followAddress(): void {
  readAddress();
  addEventListener('hashchange', readAddress);
  let timer = 0;
  let shown = page.value;
  effect(() => {
    const name = page.value;
    const hash = hashOf(name);
    tooLong.value = hash.length > HASH_MAX;
    clearTimeout(timer);
    if (tooLong.peek()) return;
    if (name !== shown) {
      shown = name;
      if (location.hash !== hash) history.pushState(null, '', hash);
      return;
    }
    timer = setTimeout(() => {
      if (location.hash !== hash) history.replaceState(null, '', hash);
    }, WRITE_MS) as unknown as number;
  });
}
