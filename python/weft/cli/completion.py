"""`weft completion`: scripts that let shells complete the command, made of the parser's tree."""

import argparse
from dataclasses import dataclass
from typing import Any

from weft.cli.arguments import add_traceback

EXAMPLES = """\
examples:
  weft completion fish > ~/.config/fish/completions/weft.fish
  source <(weft completion bash)       in ~/.bashrc
  source <(weft completion zsh)        in ~/.zshrc"""


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "completion",
        help="print what lets a shell complete the command line",
        description="Prints a script that lets a shell complete subcommands, options, values and "
        "functions of files.",
        epilog=EXAMPLES,
    )
    parser.add_argument("shell", choices=tuple(SHELLS))
    add_traceback(parser)
    parser.set_defaults(run=main)


def main(options: argparse.Namespace) -> None:
    print(SHELLS[options.shell](tree(options.root)), end="")


@dataclass
class Command:
    """What may stand behind a command: words, and options with the words that they take."""

    name: str  # empty: the command line itself
    words: dict[str, str]  # each with its help
    options: list[argparse.Action]


def tree(parser: argparse.ArgumentParser) -> list[Command]:
    found, commands = [], {}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            commands = {
                about.dest: (action.choices[about.dest], about.help or "")
                for about in action._choices_actions
            }
    found.append(Command("", {name: text for name, (_, text) in commands.items()}, named(parser)))
    for name, (sub, _) in commands.items():
        words = [a.choices for a in sub._actions if a.choices and not a.option_strings]
        found.append(Command(name, {str(w): "" for each in words for w in each}, named(sub)))
    return found


def named(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    return [action for action in parser._actions if action.option_strings]


# Prints the public names at the top of a Python file: of functions, and of what is assigned
# (`step = weft.jit(f)`). The file is not run.
NAMES = "sed -nE 's/^(async )?def ([A-Za-z]\\w*).*/\\2/p; s/^([A-Za-z]\\w*)(:.*)? *=.*/\\1/p'"
# The names behind FILE.py: in bash, which takes a colon for a word, and in zsh, which does not:
# there the file is in front of each.
TARGETS = (
    "  target=$current",
    "  [[ $previous == : ]] && target=${COMP_WORDS[COMP_CWORD-2]}:$current",
    "  [[ $current == : ]] && target=$previous:",
    "  if [[ $target == *.py:* ]]; then",
    f'    words=$({NAMES} "${{target%%:*}}" 2>/dev/null)',
    '    COMPREPLY=($(compgen -W "$words" -- "${target#*:}"))',
    "    [[ $current == *.py:* ]] && COMPREPLY=(${COMPREPLY[@]/#/${target%%:*}:})",
    "    return",
    "  fi",
)


def bash(commands: list[Command]) -> str:
    """What a function does not complete bash completes as the name of a file."""
    values, words = [], []
    for command in commands:
        for action in command.options:
            if action.choices:
                patterns = "|".join(f"{command.name},{name}" for name in action.option_strings)
                choices = " ".join(map(str, action.choices))
                values.append(f'    {patterns}) words="{choices}" ;;')
        options = " ".join(name for a in command.options for name in a.option_strings)
        name, known = command.name or "''", " ".join(command.words)
        words.append(f'    {name}) words="{known}"; options="{options}" ;;')
    names = "|".join(command.name for command in commands if command.name)
    lines = [
        "_weft() {",
        "  local word words options command= target",
        "  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}",
        '  for word in "${COMP_WORDS[@]:1:$((COMP_CWORD - 1))}"; do',
        f"    case $word in {names}) command=$word; break ;; esac",
        "  done",
        "  case $command in",
        *words,
        "  esac",
        "  case $command,$previous in",
        *values,
        "  esac",
        "  [[ $current == -* ]] && words=$options",
        *TARGETS,
        '  COMPREPLY=($(compgen -W "$words" -- "$current"))',
        "}",
        "complete -o default -F _weft weft",
    ]
    return "\n".join(lines) + "\n"


def zsh(commands: list[Command]) -> str:
    return "autoload -Uz compinit bashcompinit\ncompinit\nbashcompinit\n" + bash(commands)


def fish(commands: list[Command]) -> str:
    lines = [
        "function __weft_targets",
        "  set -l file (string match -r '^(.*\\.py):' -- (commandline -ct))[2]",
        f'  {NAMES} $file 2>/dev/null | string replace -r "^" "$file:"',
        "end",
        "set -l in_target 'string match -q \"*.py:*\" -- (commandline -ct)'",
        "complete -c weft -n $in_target -f -a '(__weft_targets)'",
        "complete -c weft -n __fish_use_subcommand -f",
    ]
    for command in commands:
        where = f"__fish_seen_subcommand_from {command.name}"
        head = f"complete -c weft -n '{where if command.name else '__fish_use_subcommand'}'"
        for word, text in command.words.items():
            lines.append(f"{head} -f -a {word} -d {quoted(text)}")
        for action in command.options:
            line = head
            for name in action.option_strings:
                line += f" -l {name[2:]}" if name.startswith("--") else f" -s {name[1:]}"
            if action.choices:
                line += f" -x -a {quoted(' '.join(map(str, action.choices)))}"
            elif str(action.metavar).startswith("FILE.py:"):
                line += " -x -a '(__weft_targets; __fish_complete_path (commandline -ct))'"
            elif action.nargs != 0:
                line += " -r"
            lines.append(f"{line} -d {quoted(action.help or '')}")
    return "\n".join(lines) + "\n"


def quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


SHELLS = {"bash": bash, "zsh": zsh, "fish": fish}
