"""Intrinsics that make compiled code wait less for memory: arrays without reference counts, and prefetching."""

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic


def _borrowed(typing_context, arrays):  # type: ignore[no-untyped-def]  # the form that numba asks for
    """The same (named) tuple of arrays without their owners; valid as long as the caller holds the tuple itself.

    Numba counts references, atomically, wherever an array is taken out of a tuple or given to a function, also one
    that is inlined. Such an instruction lets no later load begin before it, so that a search waits for each line of
    memory by itself. An array without an owner has nothing to count.
    """
    if not isinstance(arrays, types.NamedTuple) or not all(isinstance(a, types.Array) for a in arrays.types):
        return None

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        (whole,) = arguments
        for i, kind in enumerate(signature.return_type):
            array = context.make_array(kind)(context, builder, builder.extract_value(whole, i))
            array.meminfo = ir.Constant(array.meminfo.type, None)
            array.parent = ir.Constant(array.parent.type, None)
            whole = builder.insert_value(whole, array._getvalue(), i)
        return whole

    return arrays(arrays), generate


borrowed: Any = intrinsic(_borrowed)


def _prefetch(typing_context, array, index):  # type: ignore[no-untyped-def]
    """Prefetches the cache line that holds array[index] (of a flat view of it).

    Does not read it: an index outside the array is harmless. Useful if many lines are known before the first of them
    is needed, because a core loads a dozen in the time of one.
    """
    if not isinstance(array, types.Array) or not isinstance(index, types.Integer):
        return None

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        at = context.cast(builder, arguments[1], signature.args[1], types.intp)
        line = builder.bitcast(builder.gep(data, [at]), cgutils.voidptr_t)
        i32 = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, i32, i32, i32])
        function = builder.module.declare_intrinsic("llvm.prefetch", (cgutils.voidptr_t,), kind)
        builder.call(function, [line, i32(0), i32(3), i32(1)])  # to read, keep in all caches, data
        return context.get_dummy_value()

    return types.void(array, index), generate


prefetch: Any = intrinsic(_prefetch)
