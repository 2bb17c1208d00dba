"""py_test for pytest modules."""

def py_test(name, srcs, deps = [], tags = []):
    """Runs pytest on some modules, in one process.

    Args:
      name: the folder that the modules are all of, or the one module without its suffix.
      srcs: the test modules.
      deps: the libraries that they import.
      tags: their pytest marks.
    """
    native.py_test(
        name = name,
        timeout = "long",
        srcs = srcs + ["//bazel:pytest_main.py"],
        main = "//bazel:pytest_main.py",
        args = ["$(location {})".format(module) for module in srcs],
        data = ["//:pyproject.toml"],
        deps = deps + ["//:recurrent_replay"],
        tags = tags,
    )
