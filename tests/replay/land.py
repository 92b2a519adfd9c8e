"""Lands replayed packages with real hooks and signatures, rewrites the history, and checks what
`land`, `blame`, `bisect` and `find` say against git's own account of the package.

    python3 tests/replay/land.py [--teddy target/debug/teddy] [--limit 24] [crate:semver files:DIR ...]
"""

import argparse
import hashlib
import json
import os
import random
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import time

from packages import git, history
from plans import plan_between
from replay import SESSION, Workspace, Wrong, expect

PACKAGES = ["crate:semver", "crate:itoa", "crate:humantime", "python:colorama"]

# A commit for each turn; several turns in one; several, and a formatter changes them.
WAYS = ["each", "together", "formatted"]

FORMATTER = """#!/bin/sh
format() {
    case $1 in
        *.rs) %s < "$1" > .formatted 2>/dev/null && cat .formatted > "$1"; rm -f .formatted ;;
        *) sed -i 's/[ \\t]*$//' "$1" ;;
    esac
    git add -- "$1"
}
git diff --cached --name-only --diff-filter=AM -- '*.rs' '*.py' '*.md' | while read -r path; do
    test -L "$path" || format "$path"
done
"""

LINTER = """#!/bin/sh
head -n 1 "$1" | grep -Eq '^.{1,72}$' || { echo 'the subject is too long' >&2; exit 1; }
sed -n 2p "$1" | grep -q . && { echo 'the second line is not blank' >&2; exit 1; }
git interpret-trailers --parse "$1" | grep -q '^Teddy-Turn: ' || { echo 'no trailer' >&2; exit 1; }
echo seen >> %s
"""


class Project(Workspace):
    """A repository whose user signs commits, formats files and checks messages."""

    def __init__(self, teddy, folder, steps, source, way):
        super().__init__(teddy, folder, steps, source)
        self.way, self.turns, self.landed = way, {}, 0
        self.linted = os.path.join(self.home, "linted")
        key = os.path.join(self.home, "key")
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "replay", "-f", key], check=True)
        with open(key + ".pub", encoding="utf-8") as public, open(key + ".signers", "w", encoding="utf-8") as signers:
            signers.write("replay@localhost " + public.read())
        for name, value in (("gpg.format", "ssh"), ("user.signingKey", key), ("commit.gpgSign", "true"), ("gpg.ssh.allowedSignersFile", key + ".signers")):
            git(self.folder, "config", name, value)
        self.hook("commit-msg", LINTER % self.linted)
        if way == "formatted":
            self.hook("pre-commit", FORMATTER % rustfmt())

    def hook(self, name, text):
        """Writes a hook."""
        path = os.path.join(self.folder, ".git/hooks", name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, stat.S_IRWXU)

    def json(self, *args, codes=(0,)):
        """Runs TeDDy and returns its result."""
        return json.loads(self.run("--json", *args, codes=codes))

    def head(self):
        """Returns HEAD's tree."""
        return git(self.folder, "rev-parse", "HEAD^{tree}")

    def chain(self):
        """Returns number, commit, and the trees before and after of each turn with files, oldest first."""
        rows = []
        for commit in git(self.folder, "rev-list", "--first-parent", "--reverse", f"teddy/sessions/{SESSION}").split():
            meta = git(self.folder, "show", f"{commit}:meta.yaml")
            before, after = (re.search(rf"^  {name}: ([0-9a-f]+)$", meta, re.M) for name in ("before", "after"))
            if before and after:
                rows.append((int(re.search(r"^number: (\d+)$", meta, re.M)[1]), commit, before[1], after[1]))
        return rows

    def blob(self, commit, path):
        """Returns the bytes of a file in a commit; nothing where it is not there."""
        try:
            return git(self.folder, "cat-file", "blob", f"{commit}:{path}", text=False)
        except RuntimeError:
            return None


def rustfmt():
    """Returns the program that formats Rust, whatever home directory a hook has."""
    found = subprocess.run(["rustup", "which", "rustfmt"], capture_output=True, check=False) if shutil.which("rustup") else None
    path = found.stdout.decode().strip() if found and found.returncode == 0 else shutil.which("rustfmt")
    return f"{path} --quiet --edition 2021" if path else "cat"


def land(project, group, tree):
    """Lands what is not landed yet, and checks the commits, the index and the files."""
    old = git(project.folder, "rev-parse", "HEAD")
    done = project.json("land", *(["--each"] if project.way == "each" else ["-m", "Several versions", "-m", "As published."]))
    commits = git(project.folder, "rev-list", "--reverse", f"{old}..HEAD").split()
    if [row["commit"] for row in done["commits"]] != commits or [turn for row in done["commits"] for turn in row["turns"]] != group:
        raise Wrong(f"turns {group} landed as {done['commits']}")
    for commit in commits:
        git(project.folder, "verify-commit", commit)
        turns = git(project.folder, "log", "-1", "--format=%(trailers:key=Teddy-Turn,valueonly)", commit).split("\n")
        if git(project.folder, "log", "-1", "--format=%(trailers:key=Teddy-Session,valueonly)", commit).strip() != SESSION or not turns:
            raise Wrong(f"{commit} has no trailers")
    with open(project.linted, encoding="utf-8") as file:
        project.landed += len(commits)
        if len(file.readlines()) != project.landed:
            raise Wrong("a message was not checked")
    if project.way != "formatted":
        expect(project.head(), tree, "HEAD after a landing", project)
    expect(project.files_tree(), project.head(), "the files after a landing", project)
    dirty = git(project.folder, "status", "--porcelain")
    if dirty or done["overlaps"] or done["staged"]:
        raise Wrong(f"after a landing not all is committed: {dirty} {done}")


def build(project, source, steps, dice):
    """Executes a plan for each step, and lands some of them together."""
    group = []
    for number, (name, _, tree) in enumerate(steps[1:], 1):
        plan = plan_between(project.folder, project.files_tree(), tree, f"Version {name}", dice)
        path = os.path.join(project.home, "plan.md")
        with open(path, "w", encoding="utf-8", newline="", errors="surrogateescape") as file:
            file.write(plan.render())
        project.run("execute", path, "-y", "--no-replan")
        expect(project.files_tree(), tree, f"step {number} ({name})", project)
        group.append(project.json("status")["turn"])
        project.turns[steps[number][1]] = group[-1]
        if number % 4 == 0 or number == len(steps) - 1:
            land(project, group, tree)
            group = []


def sample(project, dice):
    """Returns some text files of HEAD."""
    names = git(project.folder, "ls-files", "-s", "-z", text=False).decode(errors="surrogateescape").split("\0")[:-1]
    rows = [name.split("\t", 1) for name in names]
    plain = [path for mode, path in rows if mode.startswith("100") and b"\0" not in (project.blob("HEAD", path) or b"\0")]
    return dice.sample(plain, min(12, len(plain)))


def blamed(project, paths):
    """Returns which turn each line of some files has, nothing for those of before."""
    told = {}
    for path in paths:
        lines = project.json("blame", path)
        if any(line["kind"] == "uncommitted" for line in lines):
            raise Wrong(f"`{path}` has lines that nobody committed")
        told[path] = [line.get("turn") for line in lines]
    return told


def commits_of(folder, commits, path):
    """Returns which commit git blames for each line of a file."""
    text = git(folder, "blame", "-s", "--porcelain", commits, "--", path)
    return re.findall(r"^([0-9a-f]{40,64}) \d+ \d+(?: \d+)?$", text, re.M)


def blame(project, source, steps, paths):
    """Compares what `blame` says with what git says of the package; returns how many lines, and how many are the same."""
    told, lines, same = blamed(project, paths), 0, 0
    for path in paths:
        landed = [commit != steps[0][1] for commit in commits_of(project.folder, f"{steps[0][1]}..HEAD", path)]
        if project.way == "formatted":
            # What landed has a turn, whatever the formatter made of it.
            wanted, found = landed, [turn is not None for turn in told[path]]
        else:
            wanted = [project.turns.get(commit) for commit in commits_of(source, f"{steps[0][1]}..{steps[-1][1]}", path)]
            found = told[path]
        if project.way == "together":
            # What one turn takes away and another of the landing brings back has not landed.
            wanted, found = ([turn for turn, is_new in zip(turns, landed) if is_new] for turns in (wanted, found))
        equal = sum(one == other for one, other in zip(wanted, found))
        lines, same = lines + len(wanted), same + equal
        if len(wanted) != len(found) or (project.way != "together" and equal != len(wanted)):
            raise Wrong(f"blame {path}: {found} and not {wanted}")
    # A file that moved within a landing is new in its commit.
    if same < 0.9 * lines:
        raise Wrong(f"blame: only {same} of {lines} lines have the turn that git names")
    return told, lines, same


def bisect(project, dice):
    """Lets a file that was changed by a known turn break a test; returns how many runs it took."""
    chain = project.chain()
    own = [row for row in chain if row[0] in project.turns.values()]
    paths = git(project.folder, "ls-tree", "-r", "--name-only", "HEAD").split("\n")
    for path in dice.sample(paths, len(paths)):
        blobs = [project.blob(after, path) for *_, after in chain]
        first = project.blob(chain[0][2], path)
        for at in dice.sample(range(1, len(chain)), len(chain) - 1):
            good, bad = {first, *blobs[:at]}, set(blobs[at:])
            if good & bad or chain[at] not in own or None in good | bad or b"'" in path.encode():
                continue
            sums = "|".join(sorted(hashlib.sha256(blob).hexdigest() for blob in good))
            script = f"case $(sha256sum < '{path}' | cut -d' ' -f1) in {sums}) exit 0 ;; esac; exit 1"
            done = project.json("bisect", "run", "--", "sh", "-c", script)
            found = [row["turn"] for row in done["culprits"]]
            if found != [chain[at][0]] or len(done["runs"]) > len(chain).bit_length() + 3:
                raise Wrong(f"bisect: {found} and not {chain[at][0]} in {len(done['runs'])} runs")
            return len(done["runs"])
    return 0


def find(project, dice, paths):
    """Compares what `find` finds with what is in the commits of the turns; returns how many turns."""
    chain, hits = project.chain(), 0
    for path in paths[:4]:
        lines = [line for line in (project.blob("HEAD", path) or b"").decode(errors="replace").split("\n") if len(line.strip()) > 8 and line.isascii() and "\r" not in line]
        if not lines:
            continue
        text = dice.choice(lines)
        wanted = set()
        for number, _, before, after in chain:
            changed = git(project.folder, "diff-tree", "-r", before, after, "--", ":(literal)" + path)
            if changed and text.encode() in (project.blob(after, path) or b""):
                wanted.add(number)
        found = {row["turn"] for row in project.json("find", "-n", "100000", "-F", "--in", "code", "--path", glob(path), "--", text, codes=(0, 1))}
        if found != wanted:
            raise Wrong(f"find `{text}` in {path}: turns {sorted(found)} and not {sorted(wanted)}")
        hits += len(found)
    return hits


def glob(path):
    """Returns a pattern that is this path alone."""
    return re.sub(r"([][*?{}\\])", r"\\\1", path)


def rewrite(project, steps, paths, told):
    """Rewrites what landed by `git rebase`, and checks that `blame` and `land` know it still."""
    base = steps[0][1]
    with open(os.path.join(project.home, "unrelated"), "w", encoding="utf-8") as file:
        file.write("unrelated\n")
    index = os.path.join(project.home, "rewritten")
    git(project.folder, "read-tree", base, GIT_INDEX_FILE=index)
    blob = git(project.folder, "hash-object", "-w", file.name)
    git(project.folder, "update-index", "--add", "--cacheinfo", f"100644,{blob},unrelated.txt", GIT_INDEX_FILE=index)
    tree = git(project.folder, "write-tree", GIT_INDEX_FILE=index)
    onto = git(project.folder, "commit-tree", "-p", base, "-m", "An unrelated change", tree)
    git(project.folder, "rebase", "-q", "--onto", onto, base, "main")
    if git(project.folder, "merge-base", "HEAD", onto) != onto:
        raise Wrong("the rebase went nowhere")
    if blamed(project, paths) != told:
        raise Wrong("blame says something else after a rebase")
    nothing = project.json("land", "-m", "Again", codes=(1,))
    if nothing["error"]["kind"] != "NothingToLand":
        raise Wrong(f"after a rebase something is left to land: {nothing}")
    path = os.path.join(project.home, "plan.md")
    with open(path, "w", encoding="utf-8") as file:
        file.write("# One more\n- **Status:** Green\n- **Plan Type:** Implementation\n- **Agent:** Developer\n\n## Rationale\n```text\nx\n```\n\n"
                   "## Action Plan\n\n### `CREATE`\n- **File Path:** [one-more.txt](/one-more.txt)\n- **Description:** One more.\n\n```text\none more\n```\n")
    project.run("execute", path, "-y", "--no-replan")
    turn = project.json("status")["turn"]
    done = project.json("land", "-m", "One more")
    if [(row["turns"], row["files"]) for row in done["commits"]] != [([turn], ["one-more.txt"])]:
        raise Wrong(f"after a rebase more landed than the new turn: {done['commits']}")


def package(name, way, options):
    """Lands one package in one way."""
    folder = tempfile.mkdtemp(prefix="teddy-land-")
    source = os.path.join(folder, "source")
    steps = history(name, source, options.cache, options.limit)
    dice, start = random.Random(f"{name}{way}{options.seed}"), time.time()
    project = Project(os.path.abspath(options.teddy), folder, steps, source, way)
    build(project, source, steps, dice)
    paths = sample(project, dice)
    told, lines, same = blame(project, source, steps, paths)
    runs, hits = bisect(project, dice), find(project, dice, paths)
    rewrite(project, steps, paths, told)
    project.run("verify", "--sign")
    verified = project.json("verify")
    if verified[0]["faults"] or not verified[0]["signature"]["is_whole"]:
        raise Wrong(f"verify: {verified}")
    git(project.folder, "fsck", "--strict", "--no-progress")
    print(f"{name} {way}: {len(steps) - 1} turns in {project.landed} commits, all signed and checked; {same} of {lines} lines blamed on the turn; "
          f"the turn bisected in {runs} runs; {hits} turns found; all known after a rebase; {time.time() - start:.0f} s", flush=True)
    shutil.rmtree(folder)


def main():
    """Lands all packages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--teddy", default="target/debug/teddy")
    parser.add_argument("--cache", default=os.path.join(tempfile.gettempdir(), "teddy-replay-cache"))
    parser.add_argument("--limit", type=int, default=24)
    parser.add_argument("--seed", default="")
    parser.add_argument("packages", nargs="*", default=PACKAGES)
    options = parser.parse_args()
    os.makedirs(options.cache, exist_ok=True)
    failed = 0
    for name in options.packages:
        for way in WAYS:
            try:
                package(name, way, options)
            except (Wrong, RuntimeError) as error:
                failed += 1
                print(f"{name} {way}: {error}", file=sys.stderr, flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
