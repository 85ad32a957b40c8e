import { EXIT, type Command } from './command.ts';
import { loadVerb, verbNames, verbSummaries } from './verbs.ts';

const help = `ndots completion: completion script for a shell

  ndots completion bash > /etc/bash_completion.d/ndots
  ndots completion zsh > "\${fpath[1]}/_ndots"
  ndots completion fish > ~/.config/fish/completions/ndots.fish
`;

export const completion: Command = {
  name: 'completion',
  summary: 'completion script for bash, zsh or fish',
  help,
  options: [],
  async run([shell], io) {
    const options = new Map<string, readonly string[]>();
    for (const name of verbNames) options.set(name, (await loadVerb(name)).options);
    const print = shells[shell ?? ''];
    if (print === undefined) {
      io.err(`ndots completion takes a shell: ${Object.keys(shells).join(', ')}\n`);
      return EXIT.usage;
    }
    io.out(print(options));
    return EXIT.ok;
  },
};

type Options = ReadonlyMap<string, readonly string[]>;

const shells: Readonly<Record<string, (options: Options) => string>> = { bash, zsh, fish };

function bash(options: Options): string {
  const cases = [...options].map(([verb, list]) => `    ${verb}) words='${list.join(' ')}' ;;`);
  return `# bash completion for ndots
_ndots() {
  local word=\${COMP_WORDS[COMP_CWORD]} words
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W '${[...options.keys()].join(' ')}' -- "$word"))
    return
  fi
  case \${COMP_WORDS[1]} in
${cases.join('\n')}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$word"))
  [ \${#COMPREPLY[@]} -gt 0 ] || COMPREPLY=($(compgen -f -- "$word"))
}
complete -F _ndots ndots
`;
}

function zsh(options: Options): string {
  const verbs = [...options.keys()].map(
    (verb) => `    '${verb}:${verbSummaries.get(verb)?.replaceAll("'", '’') ?? ''}'`,
  );
  const cases = [...options].map(
    ([verb, list]) => `    ${verb}) compadd -- ${list.join(' ')} ; _files ;;`,
  );
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
_ndots "$@"
`;
}

function fish(options: Options): string {
  const verbs = [...options.keys()].map(
    (verb) =>
      `complete -c ndots -n __fish_use_subcommand -a ${verb} -d '${verbSummaries.get(verb)?.replaceAll("'", '’') ?? ''}'`,
  );
  const words = [...options].flatMap(([verb, list]) =>
    list.map(
      (option) => `complete -c ndots -n '__fish_seen_subcommand_from ${verb}' -a '${option}'`,
    ),
  );
  return `# fish completion for ndots\n${[...verbs, ...words].join('\n')}\n`;
}
