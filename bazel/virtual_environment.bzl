"""A Python toolchain whose interpreter is that of the work tree's own `.venv`."""

_BUILD = """
load("@bazel_tools//tools/python:toolchain.bzl", "py_runtime_pair")

py_runtime(
    name = "python",
    interpreter_path = "{python}",
    python_version = "PY3",
)

py_runtime_pair(
    name = "runtimes",
    py3_runtime = ":python",
)

toolchain(
    name = "toolchain",
    toolchain = ":runtimes",
    toolchain_type = "@bazel_tools//tools/python:toolchain_type",
)
"""

def _virtual_environment(context):
    root = context.path(Label("@//:WORKSPACE")).dirname
    python = root.get_child(".venv").get_child("bin").get_child("python")
    if not python.exists:
        fail("There is no interpreter at {}: run `make setup` first.".format(python))
    context.file("BUILD", _BUILD.format(python = python))

virtual_environment = repository_rule(
    implementation = _virtual_environment,
    local = True,
    doc = "Declares `@virtual_environment//:toolchain`; an absolute path cannot stand in a committed file.",
)
