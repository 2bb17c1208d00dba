"""An update, or a policy, as TensorFlow runs it: by operation, or on a GPU as a whole."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf
import tree
from absl import logging

from agents import several_learners
from agents.contract import Policy
from replay.frames import stacked
from replay.structures import Batch
from tensor_ops import xla


class update_function:
    """Makes a method of an update, which takes a batch, a `tf.function`: `@update_function`.

    The method gets the batch with its frames stacked, which is the function's first step.

    A GPU makes an operation in less time than it takes to be told of it. So there XLA compiles the
    method to one computation, unless the learner is one of several, whom it has to hear of in
    between, or it holds an operation that XLA does not have, as somebody's own network may: a
    warning says so. A processor has better kernels for single operations.
    """

    def __init__(self, method: Callable[[Any, Batch], Any]) -> None:
        def of_stacks(update: Any, batch: Batch) -> Any:
            return method(update, stacked(batch))

        self._by_operation = tf.function(of_stacks, autograph=False)
        self._as_a_whole = tf.function(of_stacks, autograph=False, jit_compile=True)

    def __get__(self, update: Any, owner: type | None = None) -> Callable[..., Any]:
        by_operation: Callable[..., Any] = self._by_operation.__get__(update, owner)
        if update is None or not _wants_whole(update):
            return by_operation
        as_a_whole = self._as_a_whole.__get__(update, owner)

        def refused() -> None:
            update.is_refused_by_xla = True

        return _attempt("update", as_a_whole, by_operation, refused)


def policy_function(policy: Policy) -> Policy:
    """Makes a policy a `tf.function`, which a GPU is given as a whole too, as `update_function`.

    Args:
      policy: of actors whose number stays, since XLA compiles for one.
    """
    by_operation: Policy = tf.function(policy)
    if not xla.has_gpu():
        return by_operation
    return _attempt("policy", tf.function(policy, jit_compile=True), by_operation)


def _attempt(
    what: str,
    as_a_whole: Callable[..., Any],
    by_operation: Callable[..., Any],
    on_refusal: Callable[[], None] = lambda: None,
) -> Callable[..., Any]:
    """One of two forms of a function: as a whole, until XLA refuses to compile it."""
    xla.introduce()
    is_refused = False

    def attempt(*args: Any) -> Any:
        nonlocal is_refused
        if not is_refused:
            try:
                return as_a_whole(*args)
            except (tf.errors.InvalidArgumentError, tf.errors.UnimplementedError) as error:
                reason = str(error).partition("\n")[0]
                logging.warning("XLA cannot compile the %s, which is slower then: %s", what, reason)
                is_refused = True
                on_refusal()
        return by_operation(*args)

    return attempt


def placed(batch: Batch) -> Batch:
    """The batch in the GPU's memory, if there is one, where an update would have to copy it."""
    if not xla.has_gpu():
        return batch
    with tf.device("GPU"):
        return tree.map_structure(tf.identity, batch)


def is_refused(update: Any) -> bool:
    """Returns whether XLA refused to compile an update as a whole."""
    return getattr(update, "is_refused_by_xla", False)


def _wants_whole(update: Any) -> bool:
    is_alone = several_learners.current().size == 1
    return xla.has_gpu() and is_alone and not is_refused(update)
