import { EXIT, type Command } from './command.ts';
import { loadVerb, verbNames, verbSummaries } from './verbs.ts';

const help = `ndots completion: completion script for a shell

  ndots completion bash > /etc/bash_completion.d/ndots
  ndots completion zsh > "\${fpath[1]}/_ndots"
  ndots completion fish > ~/.config/fish/completions/ndots.fish
`;

/** What a shell can offer after one verb. */
interface Offer {
  readonly verb: string;
  readonly summary: string;
  readonly options: readonly string[];
  readonly values: Readonly<Record<string, readonly string[]>>;
  readonly words: readonly string[];
}

type Print = (offers: readonly Offer[]) => string;

const shells: Readonly<Record<string, Print>> = { bash, zsh, fish };

export const completion: Command = {
  name: 'completion',
  summary: 'completion script for bash, zsh or fish',
  help,
  options: [],
  words: Object.keys(shells),
  async run([shell = '', ...more], io) {
    const print = Object.hasOwn(shells, shell) ? shells[shell] : undefined;
    if (print === undefined || more.length > 0) {
      io.err(`ndots completion takes a shell: ${Object.keys(shells).join(', ')}\n`);
      return EXIT.usage;
    }
    io.out(print(await offers()));
    return EXIT.ok;
  },
};

async function offers(): Promise<Offer[]> {
  const list: Offer[] = [];
  for (const verb of verbNames) {
    const { options, values = {}, words = [] } = await loadVerb(verb);
    // One quote less to escape in three shells.
    const summary = (verbSummaries.get(verb) ?? '').replaceAll("'", '’');
    list.push({ verb, summary, options: [...options, '--help'], values, words });
  }
  const summary = 'the help of a verb';
  list.push({ verb: 'help', summary, options: [], values: {}, words: verbNames });
  return list;
}

/** Options with the same values share a line. */
function grouped(values: Offer['values']): readonly (readonly [string[], readonly string[]])[] {
  const groups = new Map<string, [string[], readonly string[]]>();
  for (const [option, list] of Object.entries(values)) {
    const key = list.join(' ');
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [[option], list]);
    else group[0].push(option);
  }
  return [...groups.values()];
}

function bash(list: readonly Offer[]): string {
  const cases = list.map(({ verb, options, values, words }) => {
    const inner = grouped(values).map(
      ([names, known]) => `        ${names.join('|')}) words='${known.join(' ')}' ;;`,
    );
    inner.push(`        *) words='${[...words, ...options].join(' ')}' ;;`);
    return `    ${verb})\n      case $before in\n${inner.join('\n')}\n      esac ;;`;
  });
  return `# bash completion for ndots
_ndots() {
  local word=\${COMP_WORDS[COMP_CWORD]} before=\${COMP_WORDS[COMP_CWORD-1]} words=
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W '${list.map(({ verb }) => verb).join(' ')}' -- "$word"))
    return
  fi
  case \${COMP_WORDS[1]} in
${cases.join('\n')}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}
complete -o default -F _ndots ndots
`;
}

function zsh(list: readonly Offer[]): string {
  const verbs = list.map(({ verb, summary }) => `    '${verb}:${summary}'`);
  const cases = list.map(({ verb, options, values, words }) => {
    const inner = grouped(values).map(([names, known]) => {
      const then = known.length === 0 ? '_files' : `compadd -- ${known.join(' ')}`;
      return `        ${names.join('|')}) ${then} ;;`;
    });
    inner.push(`        *) compadd -- ${[...words, ...options].join(' ')} ;;`);
    return `    ${verb})\n      case $words[CURRENT-1] in\n${inner.join('\n')}\n      esac ;;`;
  });
  return `#compdef ndots
_ndots() {
  local -a verbs=(
${verbs.join('\n')}
  )
  if (( CURRENT == 2 )); then
    _describe verb verbs
    return
  fi
  case $words[2] in
${cases.join('\n')}
  esac
}
if [ "$funcstack[1]" = _ndots ]; then _ndots "$@"; else compdef _ndots ndots; fi
`;
}

function fish(list: readonly Offer[]): string {
  const lines = list.flatMap(({ verb, summary, options, values, words }) => {
    const here = `complete -c ndots -n '__fish_seen_subcommand_from ${verb}'`;
    return [
      `complete -c ndots -n __fish_use_subcommand -f -a ${verb} -d '${summary}'`,
      ...words.map((word) => `${here} -f -a ${word}`),
      ...options.map((option) => fishOption(here, option, values[option])),
    ];
  });
  return `# fish completion for ndots\n${lines.join('\n')}\n`;
}

/** fish knows `--long`, `-x` and `-old`; words with a plus are words to it. */
function fishOption(here: string, option: string, known: readonly string[] | undefined): string {
  const name = option.replace(/^-+/, '');
  const kind = option.startsWith('--') ? '-l' : name.length === 1 ? '-s' : '-o';
  if (option.startsWith('+')) return `${here} -f -a '${option}'`;
  if (known === undefined) return `${here} ${kind} ${name}`;
  return `${here} ${kind} ${name} ${known.length === 0 ? '-r' : `-x -a '${known.join(' ')}'`}`;
}
