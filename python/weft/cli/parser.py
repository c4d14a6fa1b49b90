"""The parser of the command line: its mistakes name the subcommand and what was probably meant."""

import argparse
from typing import Any, NoReturn

from weft.cli.failures import did_you_mean


class Parser(argparse.ArgumentParser):
    """argparse's parser. Examples in help texts keep their lines."""

    def __init__(self, *args: Any, **kwargs: Any):
        kwargs.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(*args, **kwargs)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        known = [str(choice) for choice in action.choices or ()]
        if known and value not in known:
            raise argparse.ArgumentError(
                action, f"expected {one_of(known)}; got {value!r}{did_you_mean(value, known)}"
            )

    def option_names(self) -> list[str]:
        return [name for action in self._actions for name in action.option_strings]

    def refuse(self, words: list[str]) -> NoReturn:
        """Ends with a message on words of the command line that mean nothing."""
        word, known = words[0], self.option_names()
        if not word.startswith("-"):
            way = " (arguments of the function go behind --arg)" if "--arg" in known else ""
        elif word.partition("=")[0] in known:
            way = f" (it goes behind `{self.prog}`)"
        else:
            way = did_you_mean(word, known)
        self.error(f"unrecognized arguments: {' '.join(words)}{way}")


def one_of(names: list[str]) -> str:
    return " or ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
