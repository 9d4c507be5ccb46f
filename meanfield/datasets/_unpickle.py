"""Plain data from pickles, without running any code that they name."""

from __future__ import annotations

import pickletools
import struct
from collections.abc import Callable
from typing import Any

from meanfield.toolbox._errors import InputError, reason

DEEPEST = 50
LARGEST_INTEGER = 2**63  # larger ones can be chosen to collide in a dict
NUMBERS = {"f8": struct.Struct("<d"), "i8": struct.Struct("<q")}
LITTLE_ENDIAN = (3, "<", None, None, None, -1, -1, 0)  # the state of a numpy.dtype of these numbers


def _dtype(code: object, align: object, copy: object) -> struct.Struct:
    if not isinstance(code, str) or code not in NUMBERS:
        raise ValueError(f"it has a numpy.dtype of a type that is none of {', '.join(NUMBERS)}")
    return NUMBERS[code]


def _scalar(number: object, content: object) -> float | int:
    if not isinstance(number, struct.Struct) or not isinstance(content, bytes):
        raise ValueError("it has a numpy scalar without a dtype and bytes")
    return number.unpack(content)[0]


# What stands in for the names in a pickle; numpy moved its core between the releases that wrote these files and ours.
CONSTRUCTORS: dict[str, Callable[..., object]] = {
    "numpy dtype": _dtype,
    "numpy.core.multiarray scalar": _scalar,
    "numpy._core.multiarray scalar": _scalar,
}


def unpickle(data: bytes, name: str) -> Any:
    """The numbers, strings, lists and dicts in a pickle; numpy's float64 and int64 scalars become numbers.

    The pickle is read as a tree, so time and memory are proportional to its length (up to 200 bytes a byte), which the
    caller bounds. InputError if it holds anything else, calls anything, shares a list or dict, repeats a key, is nested
    deeper than 50, or is damaged.
    """
    try:
        return _checked(_interpreted(data))
    except (ValueError, LookupError, TypeError, struct.error) as error:
        raise InputError(f"{name}: expected a pickle of plain data, and it can't be read ({reason(error)})") from None


def _interpreted(data: bytes) -> object:
    machine = _Machine()
    for opcode, argument, position in pickletools.genops(data):
        if opcode.name == "STOP":
            (value,) = machine.stack
            if machine.outer or position != len(data) - 1:
                raise ValueError("it goes on after its end")
            return value
        if opcode.name not in OPCODES:
            raise ValueError(f"it has the opcode {opcode.name}")
        OPCODES[opcode.name](machine, argument)
    raise ValueError("it has no end")


class _Machine:
    """Executes the admitted opcodes, with a stack, the stacks below each mark, and a memo."""

    def __init__(self) -> None:
        self.stack: list = []
        self.outer: list[list] = []
        self.memo: dict[int, object] = {}

    def literal(self, argument: object) -> None:
        self.stack.append(argument)

    def remember(self, place: int | None) -> None:
        self.memo[len(self.memo) if place is None else place] = self.stack[-1]

    def recall(self, place: int) -> None:
        value = self.memo[place]
        if isinstance(value, (list, dict, tuple)):
            raise ValueError(f"it has a {type(value).__name__} in two places")
        self.stack.append(value)

    def mark(self, _: None) -> None:
        self.outer.append(self.stack)
        self.stack = []

    def since_mark(self) -> list:
        values, self.stack = self.stack, self.outer.pop()
        return values

    def last(self, number: int) -> list:
        return [self.stack.pop() for _ in range(number)][::-1]

    def append(self, values: list) -> None:
        if not isinstance(self.stack[-1], list):
            raise ValueError(f"it appends to a {type(self.stack[-1]).__name__}")
        self.stack[-1].extend(values)

    def set_items(self, values: list) -> None:
        target = self.stack[-1]
        if not isinstance(target, dict):
            raise ValueError(f"it sets items of a {type(target).__name__}")
        for key, value in zip(values[::2], values[1::2], strict=True):
            if not (isinstance(key, str) or _small(key)):
                raise ValueError(f"it has a {type(key).__name__} as a key: expected strings and 64-bit integers")
            if key in target:
                raise ValueError(f"it has the key {key!r:.80} twice")
            target[key] = value

    def pack(self, values: list) -> None:
        # They hold arguments only: deeper ones could overflow the stack where they are compared.
        if any(isinstance(value, tuple) for value in values):
            raise ValueError("it has a tuple in a tuple")
        self.stack.append(tuple(values))

    def name(self, named: str) -> None:
        if named not in CONSTRUCTORS:
            raise ValueError(
                f"it asks for {named.replace(' ', '.', 1):.100}: expected numpy scalars only, so it is not opened"
            )
        self.stack.append(CONSTRUCTORS[named])

    def name_on_stack(self, _: None) -> None:
        parts = self.last(2)
        if not all(isinstance(part, str) for part in parts):
            raise ValueError("it asks for what is no name")
        self.name(" ".join(parts))

    def construct(self, _: None) -> None:
        constructor, arguments = self.last(2)
        if constructor not in (_dtype, _scalar):
            raise ValueError(f"it calls a {type(constructor).__name__}")
        self.stack.append(constructor(*arguments))

    def set_state(self, _: None) -> None:
        (state,) = self.last(1)
        if not isinstance(self.stack[-1], struct.Struct) or state != LITTLE_ENDIAN:
            raise ValueError("it sets the state of something else than a little-endian dtype of eight bytes")


LITERALS = "BININT1 BININT2 BININT LONG1 BINFLOAT SHORT_BINUNICODE BINUNICODE SHORT_BINBYTES BINBYTES"
OPCODES: dict[str, Callable[[_Machine, Any], None]] = {
    **dict.fromkeys(LITERALS.split(), _Machine.literal),
    **dict.fromkeys(("PROTO", "FRAME"), lambda machine, _: None),
    "NONE": lambda machine, _: machine.literal(None),
    "NEWTRUE": lambda machine, _: machine.literal(True),
    "NEWFALSE": lambda machine, _: machine.literal(False),
    "EMPTY_LIST": lambda machine, _: machine.literal([]),
    "EMPTY_DICT": lambda machine, _: machine.literal({}),
    **dict.fromkeys(("MEMOIZE", "BINPUT", "LONG_BINPUT"), _Machine.remember),
    **dict.fromkeys(("BINGET", "LONG_BINGET"), _Machine.recall),
    "MARK": _Machine.mark,
    "APPEND": lambda machine, _: machine.append(machine.last(1)),
    "APPENDS": lambda machine, _: machine.append(machine.since_mark()),
    "SETITEM": lambda machine, _: machine.set_items(machine.last(2)),
    "SETITEMS": lambda machine, _: machine.set_items(machine.since_mark()),
    "TUPLE2": lambda machine, _: machine.pack(machine.last(2)),
    "TUPLE3": lambda machine, _: machine.pack(machine.last(3)),
    "TUPLE": lambda machine, _: machine.pack(machine.since_mark()),
    "GLOBAL": _Machine.name,
    "STACK_GLOBAL": _Machine.name_on_stack,
    "REDUCE": _Machine.construct,
    "BUILD": _Machine.set_state,
}


def _checked(value: object) -> Any:
    layer = [value]
    for _ in range(DEEPEST):
        inner: list = []
        for held in layer:
            if isinstance(held, (list, dict)):
                inner += held if isinstance(held, list) else held.values()
            elif not (held is None or isinstance(held, (float, str)) or _small(held)):
                raise ValueError(f"it has a {type(held).__name__}: expected plain data, and integers of 64 bits")
        if not inner:
            return value
        layer = inner
    raise ValueError(f"it is nested deeper than {DEEPEST}")


def _small(value: object) -> bool:
    return isinstance(value, int) and -LARGEST_INTEGER <= value < LARGEST_INTEGER


def unpickle_numbers(data: bytes, name: str) -> dict[str, float]:
    """The dict of numbers in a pickle; InputError if it holds anything else."""
    content = unpickle(data, name)
    if not isinstance(content, dict) or not all(
        isinstance(key, str) and type(value) in (int, float) for key, value in content.items()
    ):
        raise InputError(f"{name}: expected a dict from memories to probabilities")
    return content
