"""Emitted modules as jaxlib's MLIR has them: parsed, verified, as artifacts."""

import functools
import io
import re
from typing import Any


@functools.cache
def _context():
    import jaxlib.mlir.dialects.func  # noqa: F401 (registers the dialect's Python classes)
    from jaxlib.mlir import ir
    from jaxlib.mlir._mlir_libs import _jax_mlir_ext
    from jaxlib.mlir.dialects import chlo, sdy, stablehlo

    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    context = ir.Context()
    context.append_dialect_registry(registry)
    context.load_all_available_dialects()
    for dialect in (stablehlo, chlo, sdy):
        dialect.register_dialect(context)
    return context


def parse_module(text):
    """The text as an MLIR module. Raises ValueError with MLIR's diagnostics if it is malformed."""
    from jaxlib.mlir import ir

    try:
        return ir.Module.parse(text, context=_context())
    except ir.MLIRError as error:
        raise ValueError(f"malformed module: {error}") from None


def verify_module(text):
    """Parses and verifies; returns MLIR's own print of the module."""
    module = parse_module(text)
    if not module.operation.verify():
        raise ValueError("the module does not verify")
    return str(module)


def bytecode(text):
    """MLIR's bytecode of a module."""
    data = io.BytesIO()
    parse_module(text).operation.write_bytecode(data)
    return data.getvalue()


_PLATFORM = '%platform: tensor<i32> {jax.global_constant = "_platform_index"}'


def artifact(texts, keep_unused):
    """A module as a portable artifact of StableHLO, and which of the arguments it takes.

    `texts` has a module per platform; where there are several, the number of the platform is the
    first argument of the result. Arguments that are not used are dropped unless `keep_unused`.
    """
    from jaxlib.mlir.dialects import stablehlo

    several = len(texts) > 1
    alike = len(set(texts)) == 1
    module = parse_module(_by_platform(texts, alike) if several else texts[0])
    main = _main(module)
    arguments = list(main.entry_block.arguments)[several:]
    kept = [i for i, x in enumerate(arguments) if keep_unused or not alike or any(x.uses)]
    _keep_arguments(main, [*range(several), *(i + several for i in kept)])
    weeks = stablehlo.StablehloCompatibilityRequirement.WEEK_4
    version = stablehlo.get_version_from_compatibility_requirement(weeks)
    data = stablehlo.serialize_portable_artifact(module, version, allow_other_dialects=True)
    return data, tuple(kept)


# What MLIR's bytecode begins with, and so do portable artifacts of StableHLO.
BYTECODE = b"ML\xefR"


def text_of_bytecode(data):
    """The text of a module of bytecode, portable or not. Raises ValueError if it is malformed."""
    from jaxlib.mlir import ir

    try:
        return artifact_text(data)
    except (ValueError, RuntimeError, ir.MLIRError):
        pass
    module = parse_module(data)
    return module.operation.get_asm(enable_debug_info=True)


def artifact_text(data):
    """The text of a portable artifact."""
    from jaxlib.mlir.dialects import stablehlo

    return str(stablehlo.deserialize_portable_artifact(_context(), data))


def _main(module) -> Any:
    from jaxlib.mlir import ir

    return ir.SymbolTable(module.operation)["main"]


def _keep_arguments(main, kept):
    from jaxlib.mlir import ir

    block = main.entry_block
    with main.operation.context:
        attributes = main.attributes
        if "arg_attrs" in attributes:
            known = list(ir.ArrayAttr(attributes["arg_attrs"]))
            attributes["arg_attrs"] = ir.ArrayAttr.get([known[i] for i in kept])
        for i in reversed(range(len(block.arguments))):
            if i not in kept:
                block.erase_argument(i)
        types = ir.FunctionType.get([x.type for x in block.arguments], main.type.results)
        attributes["function_type"] = ir.TypeAttr.get(types)


def _by_platform(texts, alike):
    """One module of several; the first argument of its main function chooses."""
    if alike:
        return re.sub(r"@main\((?=(.))", lambda m: _with_platform(m[1]), texts[0], count=1)
    main = _main(parse_module(texts[0]))
    taken, given = ([str(t) for t in types] for types in (main.type.inputs, main.type.results))
    count = len(given)
    names = [f"%a{i}" for i in range(len(taken))]
    rows = ", ".join(f"{name}: {t}" for name, t in zip(names, taken, strict=True))
    of_types = ", ".join(given)
    results = ", ".join(f"%r#{i}" for i in range(count))
    cases, functions = [], []
    for number, text in enumerate(texts):
        functions.append(_renamed(text, f"_{number}"))
        cases.append(
            f"{{ %r:{count} = func.call @main_{number}({', '.join(names)}) : "
            f"({', '.join(taken)}) -> ({of_types})\n stablehlo.return {results} : {of_types} }}"
        )
    head = texts[0].partition("\n")[0]
    return f"""{head}
  func.func public @main({_PLATFORM}{rows and ", "}{rows}) -> ({of_types}) {{
    %r:{count} = "stablehlo.case"(%platform) ({", ".join(cases)}) : (tensor<i32>) -> ({of_types})
    return {results} : {of_types}
  }}
{"".join(functions)}}}
"""


def _with_platform(after):
    return f"@main({_PLATFORM}" + ("" if after == ")" else ", ")


def _renamed(text, suffix):
    """The functions of a module under names of their own, private."""
    body = text.partition("\n")[2].rstrip().removesuffix("}")
    own = set(re.findall(r"func\.func (?:public|private) @(\w+)", body))

    def name(found):
        return f"{found[1]}@{found[2]}{suffix}" if found[2] in own else found[0]

    body = re.sub(r"((?:private|public|call|decomposition =) )@(\w+)", name, body)
    return body.replace("func.func public", "func.func private")


def of_one_part(text):
    """Bytecode of what a device computes in a module whose main function is one shard_map."""
    module = parse_module(text)
    main = _main(module)
    mapped = next(op for op in main.entry_block if op.operation.name == "sdy.manual_computation")
    body = mapped.operation.regions[0].blocks[0]
    for argument, operand in zip(body.arguments, mapped.operation.operands, strict=True):
        argument.replace_all_uses_with(operand)
    *ops, last = list(body)
    for op in ops:
        op.operation.move_before(mapped.operation)
    for result, value in zip(mapped.operation.results, last.operation.operands, strict=True):
        result.replace_all_uses_with(value)
    mapped.operation.erase()
    del main.attributes["arg_attrs"]  # how they are split over the mesh
    for op in list(module.body):
        if op.operation.name == "sdy.mesh":
            op.operation.erase()
    data = io.BytesIO()
    module.operation.write_bytecode(data)
    return data.getvalue()
