"""py_test for a pytest module."""

def py_test(name, deps = [], tags = []):
    """Runs pytest on `<name>.py`.

    Args:
      name: the test module without its suffix.
      deps: the libraries that it imports.
      tags: its pytest marks.
    """
    module = name + ".py"
    native.py_test(
        name = name,
        srcs = [module, "//bazel:pytest_main.py"],
        main = "//bazel:pytest_main.py",
        args = ["$(location {})".format(module)],
        data = ["//:pyproject.toml"],
        deps = deps,
        tags = tags,
    )
