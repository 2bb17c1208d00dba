"""Loops over vectors of floats, written in Python and compiled by LLVM for this processor.

A learner spends most of its time in loops without a kernel in TensorFlow's libraries. Such a loop
is written with `Code`, for one shape, so that every stride is a constant:

    code = Code([Pointer, Pointer, Index])      # void (float *x, float *y, int64 n)
    x, y, n = code.arguments
    with code.loop(n) as i:
        code.store(code.load(x, i) * 2.0, y, i)
    double = code.compiled()                    # what ctypes calls, without Python's lock
"""

import contextlib
import ctypes
import functools
import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, ParamSpec, TypeAlias

import numpy as np
import tensorflow as tf

from tensor_ops import llvm
from tensor_ops.llvm import ir

Pointer, Shared = ir.PointerType(), ir.PointerType()
Index = ir.IntType(64)
Float, Byte = ir.FloatType(), ir.IntType(8)
Half = ir.IntType(16)  # the bits of a number of bfloat16
_Int32 = ir.IntType(32)
SIZES = {"float32": 4, "bfloat16": 2, "uint8": 1}  # bytes of the types of an array's numbers
_TYPES = {"float32": Float, "bfloat16": Half, "uint8": Byte}
CACHE_LINE = 64
_Given = ParamSpec("_Given")
# A product and a sum may be one operation, rounded once; no sum changes its order.
_ROUNDING = ("contract", "nsz")


def _fitted(
    function: Callable[[np.ndarray], np.ndarray], start: float, end: float, degree: int
) -> list[float]:
    """A polynomial between two numbers, constant first: at Chebyshev's points, nearly the best."""
    fit = np.polynomial.Chebyshev.interpolate(function, degree, [start, end])
    return [float(c) for c in fit.convert(kind=np.polynomial.Polynomial).coef]


_LARGEST_POWER = 87.0
_WHOLE = 1.5 * 2**23
_LN_2 = (0.693359375, math.log(2) - 0.693359375)  # the first has few bits, so n times it is exact
_EXPONENTIAL = _fitted(np.exp, -math.log(2) / 2, math.log(2) / 2, 6)
_NEAR = 0.625
_TANH = _fitted(lambda square: np.tanh(square**0.5) / square**0.5, 0, _NEAR**2, 5)


@functools.cache
def lanes() -> int:
    """Floats of a vector: 16 with AVX-512, 8 with AVX2 and FMA, 0 where there is neither."""
    features = llvm.features()
    if features.get("avx512f"):
        return 16
    return 8 if features.get("avx2") and features.get("fma") else 0


def has_tiles() -> bool:
    """Returns whether code is compiled for a processor that multiplies tiles."""
    return multiplies_tiles()


@functools.cache
def multiplies_tiles() -> bool:
    """Returns whether the processor multiplies matrices of bfloat16 tile by tile (AMX).

    Linux gives the registers for it to a process that asks, and to its forks.
    """
    if not llvm.features().get("amx-bf16"):
        return False
    arch_prctl, ask_for, tiles = 158, 0x1023, 18
    return ctypes.CDLL(None).syscall(arch_prctl, ask_for, tiles) == 0


def compiled_once(
    write: Callable[_Given, Callable[..., None]],
) -> Callable[_Given, Callable[..., None]]:
    """As `functools.cache`, for code compiled for a processor with these `lanes` and tiles."""
    compiled: dict[Hashable, Callable[..., None]] = {}

    @tf.autograph.experimental.do_not_convert  # a loop may be wanted first by a traced function
    @functools.wraps(write)
    def found(*given: _Given.args, **named: _Given.kwargs) -> Callable[..., None]:
        key = lanes(), has_tiles(), given, *named.items()
        if key not in compiled:
            compiled[key] = write(*given, **named)
        return compiled[key]

    return found


class Vector:
    """A vector of `lanes()` floats, with arithmetic."""

    def __init__(self, builder: ir.IRBuilder, value: ir.Value) -> None:
        self._builder = builder
        self.value = value

    def __add__(self, other: "Vector") -> "Vector":
        return self._with(self._builder.fadd, other.value)

    def __sub__(self, other: "Vector") -> "Vector":
        return self._with(self._builder.fsub, other.value)

    def __mul__(self, other: "Vector | float") -> "Vector":
        if isinstance(other, Vector):
            return self._with(self._builder.fmul, other.value)
        return self._with(self._builder.fmul, _constant(self.value.type, other))

    def __truediv__(self, other: "Vector") -> "Vector":
        return self._with(self._builder.fdiv, other.value)

    def _with(self, operation: Callable[..., ir.Value], other: ir.Value) -> "Vector":
        return Vector(self._builder, operation(self.value, other, flags=_ROUNDING))


class Number:
    """A whole number that is known only when the loop runs, with arithmetic."""

    def __init__(self, builder: ir.IRBuilder, value: ir.Value) -> None:
        self._builder = builder
        self.value = value

    def __add__(self, other: "Place") -> "Number":
        return self._with(self._builder.add, other)

    def __sub__(self, other: "Place") -> "Number":
        return self._with(self._builder.sub, other)

    def __mul__(self, other: "Place") -> "Number":
        return self._with(self._builder.mul, other)

    def __floordiv__(self, other: "Place") -> "Number":
        """Of a number that is not negative, as is %."""
        return self._with(self._builder.udiv, other)

    def __mod__(self, other: "Place") -> "Number":
        return self._with(self._builder.urem, other)

    def __rsub__(self, other: int) -> "Number":
        return Number(self._builder, _index(other)) - self

    __radd__, __rmul__ = __add__, __mul__

    def _with(self, operation: Callable[..., ir.Value], other: "Place") -> "Number":
        return Number(self._builder, operation(self.value, _index(other)))


# A place in an array, in floats.
Place: TypeAlias = int | Number


class Code:
    """One function without a result, while it is written.

    Args:
      arguments: their types. Nothing else points to the memory of a `Pointer`; other threads may
        use the memory of a `Shared`.
    """

    def __init__(self, arguments: Sequence[ir.Type]) -> None:
        self._module = ir.Module()
        self._module.triple = llvm.binding.get_process_triple()
        kind = ir.FunctionType(ir.VoidType(), arguments)
        self._function = ir.Function(self._module, kind, "run")
        for argument in self._function.args:
            if argument.type is not Shared and argument.type == Pointer:
                argument.add_attribute("noalias")
        # Allocations stand in a block of their own at the beginning, outside all loops.
        self._allocations = ir.IRBuilder(self._function.append_basic_block("allocations"))
        self._body = self._function.append_basic_block("body")
        self.builder = ir.IRBuilder(self._body)
        self.arguments: Sequence[Any] = [
            Number(self.builder, argument) if argument.type == Index else argument
            for argument in self._function.args
        ]
        self.lanes = lanes()
        self._vector = ir.VectorType(Float, self.lanes)

    def array(self, size: int, kind: ir.Type = Float) -> ir.Value:
        """Memory for so many floats, or bytes, on the stack; not cleared."""
        found = self._allocations.alloca(kind, size=ir.Constant(Index, size))
        found.align = 64
        found.type = Pointer  # llvmlite would have its element's type besides
        return found

    @contextlib.contextmanager
    def loop(self, stop: Place, start: Place = 0, step: int = 1) -> Iterator[Place]:
        """Once for each of start, start + step, … below stop; never, where there is none."""
        if isinstance(start, int) and isinstance(stop, int) and 0 < stop - start <= step:
            yield start
            return
        builder, before = self.builder, self.builder.block
        head, after = builder.append_basic_block("loop"), builder.append_basic_block("after")
        builder.cbranch(self._below(start, stop), head, after)
        builder.position_at_end(head)
        i = builder.phi(Index)
        i.add_incoming(_index(start), before)
        number = Number(builder, i)
        yield number
        following = number + step
        i.add_incoming(following.value, builder.block)
        builder.cbranch(self._below(following, stop), head, after)
        builder.position_at_end(after)

    @contextlib.contextmanager
    def parts(self, size: Number, parts: Number, taken: ir.Value) -> Iterator[tuple[Number, ...]]:
        """Once for each part of a batch that no thread has taken: its number, and its bounds.

        Args:
          size: of the batch.
          parts: of it.
          taken: the number that are taken, an int64 that all threads share, from 0 on.
        """
        builder = self.builder
        head, body, after = (builder.append_basic_block(name) for name in ("next", "part", "done"))
        builder.branch(head)
        builder.position_at_end(head)
        part = Number(builder, builder.atomic_rmw("add", taken, _index(1), "monotonic"))
        builder.cbranch(self._below(part, parts), body, after)
        builder.position_at_end(body)
        yield part, size * part // parts, size * (part + 1) // parts
        builder.branch(head)
        builder.position_at_end(after)

    @contextlib.contextmanager
    def where(self, place: Place, stop: int) -> Iterator[tuple[Any, Any]]:
        """Two branches to write in: for 0 <= place < stop, and for any other."""
        condition = self.builder.icmp_unsigned("<", _index(place), _index(stop))
        with self.builder.if_else(condition) as branches:
            yield branches

    @contextlib.contextmanager
    def below(self, place: Place, stop: Place) -> Iterator[tuple[Any, Any]]:
        """Two branches to write in: for place < stop, and for any other."""
        with self.builder.if_else(self._below(place, stop)) as branches:
            yield branches

    def at_most(self, place: Place, most: int) -> Place:
        found = self.builder.select(self._below(place, most), _index(place), _index(most))
        return Number(self.builder, found)

    def zeros(self) -> Vector:
        return self.numbers(0.0)

    def numbers(self, number: float) -> Vector:
        return Vector(self.builder, _constant(self._vector, number))

    def load(self, array: ir.Value, place: Place, kind: str = "float32") -> Vector:
        """A vector of an array's numbers from there on; bytes are fractions of 255."""
        builder, where = self.builder, self._at(array, place, _TYPES[kind])
        if kind == "float32":
            return Vector(builder, builder.load(where, typ=self._vector, align=4))
        found = builder.load(where, typ=ir.VectorType(_TYPES[kind], self.lanes), align=SIZES[kind])
        bits = builder.zext(found, self._bits)
        if kind == "uint8":
            return Vector(builder, builder.uitofp(bits, self._vector)) * (1 / 255)
        bits = builder.shl(bits, _constant(self._bits, 16))
        return Vector(builder, builder.bitcast(bits, self._vector))

    def store(self, vector: Vector, array: ir.Value, place: Place, kind: str = "float32") -> None:
        """Writes a vector from there on, as float32 or bfloat16."""
        found, where = vector.value, self._at(array, place, _TYPES[kind])
        if kind == "bfloat16":
            high = self.builder.lshr(self._rounded(vector), _constant(self._bits, 16))
            found = self.builder.trunc(high, ir.VectorType(Half, self.lanes))
        self.builder.store(found, where, align=SIZES[kind])

    def prefetch(self, array: ir.Value, place: Place, kind: str = "float32") -> None:
        """Asks for the memory there, to be in the core's cache when it is loaded."""
        to_read, second_cache, of_data = (ir.Constant(_Int32, number) for number in (0, 2, 1))
        where = self._at(array, place, _TYPES[kind])
        self.call("llvm.prefetch.p0", where, to_read, second_cache, of_data)

    def as_bfloat16(self, vector: Vector) -> Vector:
        """These numbers as bfloat16."""
        high = self.builder.and_(self._rounded(vector), _constant(self._bits, -(2**16)))
        return Vector(self.builder, self.builder.bitcast(high, self._vector))

    def _rounded(self, vector: Vector) -> ir.Value:
        """Bits with the nearest bfloat16 as their upper half; of two as near, the even one."""
        builder = self.builder
        bits = builder.bitcast(vector.value, self._bits)
        high = builder.lshr(bits, _constant(self._bits, 16))
        odd = builder.and_(high, _constant(self._bits, 1))
        return builder.add(bits, builder.add(odd, _constant(self._bits, 0x7FFF)))

    def load_bytes(self, array: ir.Value, place: Place) -> ir.Value:
        """As many bytes as a vector has lanes."""
        return self.builder.load(self._at(array, place, Byte), typ=self._bytes, align=1)

    def store_bytes(self, found: ir.Value, array: ir.Value, place: Place) -> None:
        self.builder.store(found, self._at(array, place, Byte), align=1)

    def bytes(self, number: int) -> ir.Value:
        return _constant(self._bytes, number)

    def larger(
        self, x: Vector, y: Vector, of_x: ir.Value, of_y: ir.Value, or_equal: bool = False
    ) -> tuple[Vector, ir.Value]:
        """y and its bytes where y > x, elsewhere x and its."""
        order = ">=" if or_equal else ">"
        where = self.builder.fcmp_ordered(order, y.value, x.value)
        value = self.builder.select(where, y.value, x.value)
        return Vector(self.builder, value), self.builder.select(where, of_y, of_x)

    def where_equal(self, found: ir.Value, number: int, x: Vector) -> Vector:
        """x where a byte is that number, elsewhere 0."""
        where = self.builder.icmp_unsigned("==", found, self.bytes(number))
        return Vector(self.builder, self.builder.select(where, x.value, self.zeros().value))

    def halves(self, numbers: Sequence[int]) -> ir.Value:
        """Numbers of bfloat16 by their bits."""
        return ir.Constant(ir.VectorType(Half, len(numbers)), list(numbers))

    def load_halves(self, array: ir.Value, place: Place, count: int) -> ir.Value:
        """So many numbers of bfloat16, for moving them."""
        where = self._at(array, place, Half)
        return self.builder.load(where, typ=ir.VectorType(Half, count), align=2)

    def store_halves(self, found: ir.Value, array: ir.Value, place: Place) -> None:
        self.builder.store(found, self._at(array, place, Half), align=2)

    def shuffled(self, x: ir.Value, y: ir.Value, order: Sequence[int]) -> ir.Value:
        """The numbers at these places of x followed by y."""
        kind = ir.VectorType(_Int32, len(order))
        return self.builder.shuffle_vector(x, y, ir.Constant(kind, list(order)))

    def joined(self, vectors: Sequence[ir.Value]) -> ir.Value:
        """A power of two of them, one after another."""
        while len(vectors) > 1:
            everything = range(2 * vectors[0].type.count)
            pairs = zip(vectors[::2], vectors[1::2], strict=True)
            vectors = [self.shuffled(*pair, everything) for pair in pairs]
        return vectors[0]

    def both_halves(self, x: Vector) -> list[Vector]:
        """The two numbers of bfloat16 that stand where a float does, as floats."""
        bits = self.builder.bitcast(x.value, self._bits)
        first = self.builder.shl(bits, _constant(self._bits, 16))
        second = self.builder.and_(bits, _constant(self._bits, -(2**16)))
        found = (self.builder.bitcast(half, self._vector) for half in (first, second))
        return [Vector(self.builder, half) for half in found]

    def beyond(self, array: ir.Value, place: Place, kind: str = "float32") -> ir.Value:
        """The array that begins there."""
        return self._at(array, place, _TYPES[kind])

    def call(self, name: str, *arguments: ir.Value) -> None:
        """Calls a function of LLVM's or the processor's by name; it returns nothing."""
        if name not in self._module.globals:
            of = ir.FunctionType(ir.VoidType(), [argument.type for argument in arguments])
            ir.Function(self._module, of, name)
        self.builder.call(self._module.globals[name], arguments)

    def choose(self, which: Vector, x: Vector, y: Vector) -> Vector:
        """x where a number is not 0, elsewhere y."""
        condition = self.builder.fcmp_unordered("!=", which.value, self.zeros().value)
        return Vector(self.builder, self.builder.select(condition, x.value, y.value))

    def exponential(self, x: Vector) -> Vector:
        """e^x. Beyond ±87, where float32 ends, the result stays e^±87.

        e^x = 2^n e^r with a whole number n and |r| <= ln 2 / 2.
        """
        inside = self._at_least(x, -_LARGEST_POWER)
        inside = self._at_least(inside * -1.0, -_LARGEST_POWER) * -1.0
        # A float as large has no fraction, and its last bits are a whole number.
        shifted = inside * math.log2(math.e) + self.numbers(_WHOLE)
        n = shifted - self.numbers(_WHOLE)
        rest = inside - n * _LN_2[0] - n * _LN_2[1]
        power = self._polynomial(_EXPONENTIAL, rest)
        bits, exponent = (self.builder.bitcast(v.value, self._bits) for v in (power, shifted))
        scaled = self.builder.add(bits, self.builder.shl(exponent, _constant(self._bits, 23)))
        found = self.builder.bitcast(scaled, self._vector)
        not_a_number = self.builder.fcmp_unordered("uno", x.value, x.value)
        return Vector(self.builder, self.builder.select(not_a_number, x.value, found))

    def sigmoid(self, x: Vector) -> Vector:
        """1 / (1 + e^-x)."""
        one = self.numbers(1.0)
        return one / (one + self.exponential(x * -1.0))

    def tanh(self, x: Vector) -> Vector:
        """2 σ(2 x) - 1, and near 0, where that loses digits, a polynomial."""
        far = self.sigmoid(x * 2.0) * 2.0 - self.numbers(1.0)
        square = x * x
        near = x * self._polynomial(_TANH, square)
        condition = self.builder.fcmp_ordered("<", square.value, self.numbers(_NEAR**2).value)
        return Vector(self.builder, self.builder.select(condition, near.value, far.value))

    def _polynomial(self, coefficients: Sequence[float], x: Vector) -> Vector:
        total = self.numbers(coefficients[-1])
        for coefficient in reversed(coefficients[:-1]):
            total = total * x + self.numbers(coefficient)
        return total

    def _at_least(self, x: Vector, least: float) -> Vector:
        below = self.builder.fcmp_ordered("<", x.value, self.numbers(least).value)
        return Vector(self.builder, self.builder.select(below, self.numbers(least).value, x.value))

    def several(self, start: Place, stop: Place, count: int) -> Iterator[tuple[Place, int]]:
        """Loops from start on, for so many at a time, and for one of those left."""
        whole = stop - (stop - start) % count
        with self.loop(whole, start, count) as i:
            yield i, count
        with self.loop(stop, whole) as i:
            yield i, 1

    def spread(self, array: ir.Value, place: Place) -> Vector:
        """One float of an array in every lane."""
        found = self.builder.load(self._at(array, place, Float), typ=Float, align=4)
        undefined = ir.Constant(self._vector, ir.Undefined)
        first = self.builder.insert_element(undefined, found, ir.Constant(_Int32, 0))
        everywhere = _constant(ir.VectorType(_Int32, self.lanes), 0)
        return Vector(self.builder, self.builder.shuffle_vector(first, undefined, everywhere))

    def positive(self, x: Vector) -> Vector:
        """max(x, 0); NaN stays NaN."""
        negative = self.builder.fcmp_ordered("<", x.value, self.zeros().value)
        return Vector(self.builder, self.builder.select(negative, self.zeros().value, x.value))

    def where_positive(self, x: Vector, y: Vector) -> Vector:
        """y where x > 0, elsewhere 0."""
        positive = self.builder.fcmp_ordered(">", x.value, self.zeros().value)
        return Vector(self.builder, self.builder.select(positive, y.value, self.zeros().value))

    def variables(self, start: Sequence[Vector]) -> list["Variable"]:
        """Vectors that change in loops; LLVM keeps them in registers."""
        memory = [self._allocations.alloca(self._vector) for _ in start]
        found = [Variable(self.builder, of, self._vector) for of in memory]
        for variable, value in zip(found, start, strict=True):
            variable.set(value)
        return found

    def compiled(self) -> Callable[..., None]:
        """The function, for ctypes: pointers and numbers are Python's integers."""
        self.builder.ret_void()
        self._allocations.branch(self._body)
        types = {Pointer: ctypes.c_void_p, Index: ctypes.c_int64}
        kind = ctypes.CFUNCTYPE(None, *(types[argument.type] for argument in self._function.args))
        engine = _machine_code(str(self._module))
        run = kind(engine.get_function_address("run"))
        run.engine = engine  # type: ignore[attr-defined]  # the code lives as long as this
        return run

    @property
    def _bytes(self) -> ir.VectorType:
        return ir.VectorType(Byte, self.lanes)

    @property
    def _bits(self) -> ir.VectorType:
        return ir.VectorType(_Int32, self.lanes)

    def _below(self, place: Place, stop: Place) -> ir.Value:
        return self.builder.icmp_signed("<", _index(place), _index(stop))

    def _at(self, array: ir.Value, place: Place, kind: ir.Type) -> ir.Value:
        return self.builder.gep(array, [_index(place)], source_etype=kind)


class Variable:
    """A vector that changes."""

    def __init__(self, builder: ir.IRBuilder, memory: ir.Value, kind: ir.VectorType) -> None:
        self._builder = builder
        self._memory = memory
        self._kind = kind

    def get(self) -> Vector:
        return Vector(self._builder, self._builder.load(self._memory, typ=self._kind))

    def set(self, value: Vector) -> None:
        self._builder.store(value.value, self._memory)


def _index(place: Place) -> ir.Value:
    return ir.Constant(Index, place) if isinstance(place, int) else place.value


def _constant(kind: ir.VectorType, number: float) -> ir.Constant:
    return ir.Constant(kind, [number] * kind.count)


def _machine_code(assembly: str) -> Any:
    llvm.binding.initialize_native_target()
    llvm.binding.initialize_native_asmprinter()
    features = llvm.binding.get_host_cpu_features().flatten()
    machine = llvm.binding.Target.from_default_triple().create_target_machine(
        opt=3, cpu=llvm.binding.get_host_cpu_name(), features=features
    )
    module = llvm.binding.parse_assembly(assembly)
    module.verify()
    options = llvm.binding.create_pipeline_tuning_options(speed_level=3)
    # Loops are written with vectors, and unrolled where that pays: LLVM's own passes would take as
    # long again, and gain nothing.
    options.loop_unrolling = options.loop_vectorization = options.loop_interleaving = False
    passes = llvm.binding.create_pass_builder(machine, options)
    passes.getModulePassManager().run(module, passes)
    engine = llvm.binding.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    return engine
