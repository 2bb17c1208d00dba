"""The package of docs/extending.md, which is outside the project, as its page has it."""

import pathlib
import re
import sys

import pytest

from tests.docs.pages import ROOT

PAGE = ROOT / "docs" / "extending.md"
AGENT, TORSO = "my_package.agents:REINFORCE", "my_package.torsos:Waves"
TASK = "my_package.tasks:Signals"


def write(folder: pathlib.Path) -> pathlib.Path:
    """Writes the package into a folder, which is then to be on PYTHONPATH; returns the folder."""
    for name, code in re.findall(r"```python\n# (\S+)\n(.*?)```", PAGE.read_text(), re.DOTALL):
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        (file.parent / "__init__.py").touch()
        file.write_text(code)
    return folder


def forget(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Has a package imported anew that another test may have imported, from another folder."""
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
