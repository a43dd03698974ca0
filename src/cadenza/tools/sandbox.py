"""Commands in a sandbox, where bubblewrap is there and works; without it they run as they are, and that is
said."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

from cadenza.core.tooling import Rights
from cadenza.tools.guard import PROTECTED

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc", "/opt")


@cache
def bubblewrap() -> str | None:
    """The path of a bubblewrap that works here; None where there is none, or where it may not work (in many
    containers)."""
    found = shutil.which("bwrap")
    if found is None:
        return None
    probe = [found, "--ro-bind", "/", "/", "--unshare-net", "--dev", "/dev", "true"]
    try:
        done = subprocess.run(probe, capture_output=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return found if done.returncode == 0 else None


def sandbox_state() -> str:
    """In words, whether commands run in a sandbox."""
    if bubblewrap() is not None:
        return "commands run in a sandbox (bubblewrap): they see the workspace and the system's programs"
    if shutil.which("bwrap") is None:
        return "commands run without a sandbox: bubblewrap (bwrap) is not installed"
    return "commands run without a sandbox: bubblewrap (bwrap) is not allowed to work here"


def wrapped(
    argv: list[str], cwd: Path, workspace: Path, rights: Rights, environment: Path | None
) -> list[str]:
    """A command as it is run: inside the sandbox where there is one."""
    program = bubblewrap()
    if program is None:
        return argv
    root = os.path.realpath(workspace)
    keep = "--ro-bind" if rights.permission == "readonly" else "--bind"
    command = [program, "--die-with-parent", "--unshare-pid", "--unshare-ipc", "--new-session"]
    for folder in SYSTEM:
        command += ["--ro-bind-try", folder, folder]
    command += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--tmpfs", "/run"]
    if environment is not None and environment.is_dir():
        for folder in (sys.base_prefix, sys.prefix, str(environment)):  # an environment's Python is a link
            command += ["--ro-bind-try", folder, folder]
    command += [keep, root, root]
    for name in sorted(PROTECTED):
        if os.path.isdir(os.path.join(root, name)) and rights.permission != "full":
            command += ["--ro-bind", f"{root}/{name}", f"{root}/{name}"]
    if not rights.network:
        command.append("--unshare-net")
    return [*command, "--chdir", os.path.realpath(cwd), "--", *argv]
