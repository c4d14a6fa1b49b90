"""A slot of primitives as a dict from primitive to rule."""

from collections.abc import MutableMapping


class Rules(MutableMapping):
    """The rules of users' primitives in one slot."""

    def __init__(self, slot, define):
        self._slot = slot
        self._define = define
        self._primitives = []  # those whose rule was set here; never freed, as ops are not

    def __getitem__(self, primitive):
        rule = primitive._rules[self._slot]
        return rule[0] if isinstance(rule, tuple) else rule

    def __setitem__(self, primitive, rule):
        self._define(primitive, rule)
        if primitive not in self._primitives:
            self._primitives.append(primitive)

    def __delitem__(self, primitive):
        del primitive._rules[self._slot]
        if primitive in self._primitives:
            self._primitives.remove(primitive)

    def __contains__(self, primitive):
        return self._slot in primitive._rules

    def __iter__(self):
        return iter(self._primitives)

    def __len__(self):
        return len(self._primitives)
