export const SHELLS = ["bash", "zsh", "fish"] as const;
export type Shell = (typeof SHELLS)[number];

/** First argument of the calls by which the scripts ask for candidates. Not for people. */
export const COMPLETE = "__complete";

// Names under which the command is installed: the second is kubectl's plugin.
const NAMES = "legation kubectl-legation";

const BASH = `# legation completion for bash: source <(legation completion bash)
_legation() {
  local IFS=$'\\n'
  COMPREPLY=($("\${COMP_WORDS[0]}" ${COMPLETE} "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f1))
}
complete -o default -F _legation ${NAMES}
`;

const ZSH = `#compdef ${NAMES}
# legation completion for zsh: source <(legation completion zsh), after compinit
_legation() {
  local -a lines candidates
  lines=("\${(@f)$("\${words[1]}" ${COMPLETE} "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  candidates=("\${(@)\${(@M)lines:#?*}/$'\\t'/:}")
  if (( \${#candidates} )); then
    _describe legation candidates
  else
    _files
  fi
}
compdef _legation ${NAMES}
`;

const FISH = `# legation completion for fish: legation completion fish | source
function __legation_complete
    set -l words (commandline -opc) (commandline -ct)
    $words[1] ${COMPLETE} $words[2..] 2>/dev/null
end
${NAMES.split(" ")
  .map((name) => `complete -c ${name} -a '(__legation_complete)'`)
  .join("\n")}
`;

/** Completion scripts. Candidates come one a line, with a description behind a tabulator. */
export const SCRIPTS: Readonly<Record<Shell, string>> = { bash: BASH, zsh: ZSH, fish: FISH };
