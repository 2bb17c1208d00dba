"""Repositories for Debian's Bazel 4.2, which would download them: Debian's packages, two stubs."""

_REPOSITORIES = {
    "platforms": "/usr/share/bazel/tools/platforms",
    "remote_coverage_tools": "bazel/debian/remote_coverage_tools",
    "rules_cc": "bazel/debian/rules_cc",
    "rules_java": "/usr/share/bazel/rules/java",
    "rules_proto": "/usr/share/bazel/rules/proto",
}

def debian_repositories():
    """Declares them where the Bazel at work is no release, as Debian's is not; a release needs none."""
    if native.bazel_version:
        return
    for name, path in _REPOSITORIES.items():
        native.local_repository(name = name, path = path)
