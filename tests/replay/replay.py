"""Replays published packages through TeDDy, version by version, and compares every tree with git's own.

    python3 tests/replay/replay.py [--teddy target/debug/teddy] [--limit 60] [crate:semver python:click ...]
"""

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time

from packages import GIT_ENV, git, history
from plans import plan_between

PACKAGES = ["crate:semver", "crate:memchr", "python:colorama", "python:click"]
SESSION = "replay"


class Workspace:
    """A repository in which a session replays a package."""

    def __init__(self, teddy, folder, steps, source):
        self.teddy, self.folder, self.home = teddy, os.path.join(folder, "work"), os.path.join(folder, "home")
        os.makedirs(self.home)
        git(folder, "init", "-q", "-b", "main", self.folder)
        git(self.folder, "fetch", "-q", source, "main")
        git(self.folder, "reset", "-q", "--hard", steps[0][1])
        self.run("new", SESSION)
        self.run("context", "add", "**/*")

    def run(self, *args, codes=(0,)):
        """Runs TeDDy."""
        env = {**GIT_ENV, "HOME": self.home, "TERM": "dumb"}
        command = [self.teddy, "-c", "snapshot.exclude=[]", *args]
        done = subprocess.run(command, cwd=self.folder, env=env, capture_output=True, stdin=subprocess.DEVNULL, check=False)
        if done.returncode not in codes:
            raise RuntimeError(f"teddy {' '.join(args)}: exit {done.returncode}\n{done.stderr.decode()[-3000:]}")
        return done.stdout.decode(errors="replace")

    def session_tree(self):
        """Returns the tree of the newest turn's workspace commit."""
        return git(self.folder, "rev-parse", f"teddy/sessions/{SESSION}^2^{{tree}}")

    def files_tree(self):
        """Returns the tree of the files as git itself adds them, by an index of its own."""
        index = os.path.join(self.home, "index")
        # With its time: git reads what was written in the same second.
        shutil.copy2(os.path.join(self.folder, ".git/index"), index)
        git(self.folder, "add", "-A", GIT_INDEX_FILE=index)
        return git(self.folder, "write-tree", GIT_INDEX_FILE=index)

    def own(self):
        """Returns what is the user's and must stay: HEAD, branches, index, configuration."""
        state = [git(self.folder, "rev-parse", "HEAD"), git(self.folder, "for-each-ref", "refs/heads", "refs/tags")]
        for name in ("index", "config", "HEAD"):
            with open(os.path.join(self.folder, ".git", name), "rb") as file:
                state.append(file.read())
        return state


class Wrong(Exception):
    """A tree is not what it must be."""


def expect(found, wanted, what, workspace):
    """Stops where a tree differs, and shows how."""
    if found != wanted:
        shown = git(workspace.folder, "diff-tree", "-r", "--stat", wanted, found)
        raise Wrong(f"{what}: {found} and not {wanted}\n{shown}")


def replay(workspace, source, steps, dice, counts, keep):
    """Executes a plan for each step."""
    for number, ((_, old, _), (name, new, tree)) in enumerate(zip(steps, steps[1:]), 1):
        plan = plan_between(source, old, new, f"Version {name}", dice)
        path = os.path.join(keep, f"{number:03}.md")
        with open(path, "w", encoding="utf-8", newline="", errors="surrogateescape") as file:
            file.write(plan.render())
        before = workspace.own()
        workspace.run("execute", path, "-y", "--no-replan")
        expect(workspace.session_tree(), tree, f"step {number} ({name}), the turn", workspace)
        expect(workspace.files_tree(), tree, f"step {number} ({name}), the files", workspace)
        if workspace.own() != before:
            raise Wrong(f"step {number}: the user's index, HEAD, branches or configuration changed")
        for action, count in plan.count.items():
            counts[action] = counts.get(action, 0) + count
        if number % 7 == 0:
            git(workspace.folder, "add", "-A")
            git(workspace.folder, "commit", "-q", "-m", f"the user's own commit of {name}")


def go_back(workspace, steps, dice):
    """Restores random turns, plainly and exactly, a file of the user's own beside them."""
    own = os.path.join(workspace.folder, "the user's own.txt")
    with open(own, "w", encoding="utf-8") as file:
        file.write("mine\n")
    for _ in range(20):
        number = dice.randrange(1, len(steps))
        workspace.run("restore", str(number))
        if not os.path.exists(own):
            raise Wrong(f"restore {number}: the user's own file is gone")
        os.rename(own, own + ".aside")
        os.rename(own + ".aside", os.path.join(workspace.home, "aside"))
        expect(workspace.files_tree(), steps[number][2], f"restore {number}", workspace)
        os.rename(os.path.join(workspace.home, "aside"), own)
    os.unlink(own)
    for _ in range(20):
        number = dice.randrange(1, len(steps))
        workspace.run("restore", str(number), "--exact", "-y")
        expect(workspace.files_tree(), steps[number][2], f"restore --exact {number}", workspace)
        expect(workspace.session_tree(), steps[number][2], f"restore --exact {number}, the turn", workspace)


def sound(workspace, folder):
    """Checks the repository, and that a clone gets the session."""
    git(workspace.folder, "fsck", "--strict", "--no-progress")
    clone = os.path.join(folder, "clone")
    git(folder, "clone", "-q", workspace.folder, clone)
    git(clone, "fetch", "-q", "origin", "refs/teddy/*:refs/teddy/*")
    name = f"refs/teddy/sessions/{SESSION}"
    if git(clone, "rev-parse", name) != git(workspace.folder, "rev-parse", name):
        raise Wrong("the clone has another session")
    git(clone, "fsck", "--strict", "--no-progress", "--connectivity-only")


def growth(workspace, turns):
    """Returns what the repository has grown by, in words."""
    sizes = dict(line.split(": ") for line in git(workspace.folder, "count-objects", "-v").splitlines())
    return f"{int(sizes['count']) / turns:.0f} loose objects and {int(sizes['size']) / turns:.0f} KiB a turn, {sizes['packs']} packs"


def package(name, options, counts):
    """Replays one package; returns how many steps."""
    folder = tempfile.mkdtemp(prefix="teddy-replay-")
    source = os.path.join(folder, "source")
    keep = os.path.join(folder, "plans")
    os.makedirs(keep)
    steps = history(name, source, options.cache, options.limit)
    workspace = Workspace(os.path.abspath(options.teddy), folder, steps, source)
    dice, start = random.Random(f"{name}{options.seed}"), time.time()
    replay(workspace, source, steps, dice, counts, keep)
    took = time.time() - start
    grown = growth(workspace, len(steps) - 1)
    go_back(workspace, steps, dice)
    sound(workspace, folder)
    print(f"{name}: {len(steps) - 1} steps equal, 40 restores equal, fsck and clone sound; {took / (len(steps) - 1):.2f} s a step; {grown}", flush=True)
    shutil.rmtree(folder)
    return len(steps) - 1


def main():
    """Replays all packages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--teddy", default="target/debug/teddy")
    parser.add_argument("--cache", default=os.path.join(tempfile.gettempdir(), "teddy-replay-cache"))
    parser.add_argument("--limit", type=int, default=60)
    parser.add_argument("--seed", default="")
    parser.add_argument("packages", nargs="*", default=PACKAGES)
    options = parser.parse_args()
    os.makedirs(options.cache, exist_ok=True)
    counts, total, failed = {}, 0, []
    for name in options.packages:
        try:
            total += package(name, options, counts)
        except (Wrong, RuntimeError) as error:
            failed.append(name)
            print(f"{name}: {error}", file=sys.stderr, flush=True)
    print(f"{total} steps; actions: " + ", ".join(f"{count} {action}" for action, count in sorted(counts.items())))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
