/** `ndots completion SHELL`: prints a completion script that calls `ndots __complete` (`complete.ts`). */
import { didYouMean, type Problem } from '../../../server/base/problem.ts';
import { EXIT, type Command } from '../command.ts';
import type { Usage } from '../option.ts';
import { parseOptions } from '../option-parse.ts';
import { usage } from '../option-values.ts';

const bash = `# bash completion for ndots
_ndots() {
  local line=\${COMP_LINE:0:COMP_POINT} head='' part directive=0 sign
  local -a words
  read -ra words <<< "$line"
  case $line in *[[:blank:]]) words+=('') ;; esac
  local word=\${words[\${#words[@]}-1]}
  # Bash ends words at these characters, so the part before them is already on the line.
  for sign in = : @; do
    [[ $COMP_WORDBREAKS == *$sign* && $word == *$sign* ]] || continue
    part=\${word%"\${word##*$sign}"}
    if (( \${#part} > \${#head} )); then head=$part; fi
  done
  COMPREPLY=()
  while IFS= read -r line; do
    case $line in
      :*) directive=\${line#:} ;;
      *) line=\${line%%$'\\t'*}; COMPREPLY+=("\${line#"$head"}") ;;
    esac
  done < <("\${1/#\\~/$HOME}" __complete "\${words[@]:1}" 2>/dev/null)
  if (( directive & 2 )); then compopt -o nospace; fi
  if (( ! (directive & 4) )); then compopt -o default; fi
}
complete -F _ndots ndots
`;

const zsh = `#compdef ndots
_ndots() {
  local -a lines found how
  local line directive=0
  lines=("\${(@f)$("\${(Q)words[1]}" __complete "\${(@Q)words[2,CURRENT-1]}" "$PREFIX" 2>/dev/null)}")
  for line in "\${lines[@]}"; do
    case $line in
      :*) directive=\${line#:} ;;
      *$'\\t'*) found+=("\${\${line%%$'\\t'*}//:/\\\\:}:\${line#*$'\\t'}") ;;
      *) found+=("\${line//:/\\\\:}") ;;
    esac
  done
  if (( directive & 2 )); then how=(-S ''); fi
  if (( \${#found} )); then _describe -V ndots found "\${how[@]}"; fi
  if (( ! (directive & 4) )); then _files; fi
}
if [ "$funcstack[1]" = _ndots ]; then _ndots "$@"; else compdef _ndots ndots; fi
`;

const fish = `# fish completion for ndots
function __ndots_complete
  set -l words (commandline -opc)
  set -l word (commandline -ct)
  set -l program $words[1]
  set -e words[1]
  for line in ($program __complete $words "$word" 2>/dev/null)
    switch $line
      case ':0' ':2'
        __fish_complete_path "$word"
      case ':*'
      case '*'
        printf '%s\\n' $line
    end
  end
end
complete -c ndots -f -a '(__ndots_complete)'
`;

const kubectl = `#!/bin/sh
# kubectl (1.26 and later) runs kubectl_complete-ndots, from the PATH, to complete kubectl ndots.
exec kubectl ndots __complete "$@"
`;

const shells: Readonly<Record<string, string>> = { bash, zsh, fish, kubectl };

export const completionUsage: Usage = {
  synopsis: Object.keys(shells).join('|'),
  examples: [
    ['bash > /etc/bash_completion.d/ndots', ''],
    ['zsh > "${fpath[1]}/_ndots"', ''],
    ['fish > ~/.config/fish/completions/ndots.fish', ''],
    ['kubectl > ~/.local/bin/kubectl_complete-ndots', 'then chmod +x'],
  ],
  style: 'gnu',
  options: {},
  notes: [
    'The last one completes kubectl ndots. If npm installed kubectl-ndots, kubectl_complete-ndots is already beside it.',
  ],
  words: { words: Object.keys(shells) },
};

export const completion: Command = {
  name: 'completion',
  async run(given, io) {
    const [shell = '', ...more] = parseOptions({}, given).words;
    const script = Object.hasOwn(shells, shell) ? shells[shell] : undefined;
    if (script === undefined || more.length > 0) throw wrongShell(shell, more);
    io.out(script);
    return EXIT.ok;
  },
};

function wrongShell(shell: string, more: readonly string[]): Problem {
  const known = `Known: ${Object.keys(shells).join(', ')}`;
  if (shell === '') return usage('which shell?', known);
  if (more.length > 0) return usage('completion needs the name of one shell', known);
  return usage(
    `there is no completion for "${shell}"`,
    didYouMean(shell, Object.keys(shells), known),
  );
}
