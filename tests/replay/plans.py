"""Plans from differences: what leads from one commit to the next, in the actions of a plan.

Text files become CREATE and EDIT, everything else a script for EXECUTE. The ways that the format
offers (fences, line ends, pairs inside a line, whole files) are chosen by dice, so that a long
replay sees all of them.
"""

import base64
import difflib
import re
import shlex
import unicodedata

from packages import git


def changes(repo, old, new):
    """Returns `(status, old mode, new mode, path, new path, old bytes, new bytes)` of each change; renames are found."""
    raw = git(repo, "diff-tree", "-r", "-z", "-M50%", "--no-commit-id", old, new, text=False).split(b"\0")
    found, at = [], 0
    while at + 1 < len(raw):
        old_mode, new_mode, old_id, new_id, status = raw[at].decode().lstrip(":").split(" ")
        path = raw[at + 1].decode(errors="surrogateescape")
        renamed = status[0] in "RC"
        target = raw[at + 2].decode(errors="surrogateescape") if renamed else path
        at += 3 if renamed else 2
        read = lambda oid: b"" if set(oid) == {"0"} else git(repo, "cat-file", "blob", oid, text=False)
        found.append((status[0], old_mode, new_mode, path, target, read(old_id), read(new_id)))
    return found


def as_text(content):
    """Returns bytes as text that a block can hold, or None."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return None
    # In a block the line feed that closes it would make one line end of a last carriage return.
    return None if "\0" in text or text.startswith("\ufeff") or text.endswith("\r") else text


def is_plain(path):
    """Returns whether a plan can name a path."""
    odd = any(unicodedata.category(c)[0] == "C" or c in "\\`" for c in path)
    parts = path.split("/")
    return not odd and all(part == part.rstrip(". ") and part == part.lstrip(" ") and "~" not in part for part in parts)


class Plan:
    """A plan in the making."""

    def __init__(self, title, dice):
        self.title, self.dice, self.actions, self.count = title, dice, [], {}

    def fence(self, content, info=""):
        """Returns a code block."""
        mark = self.dice.choice("``~")
        longest = max((len(run) for run in re.findall(re.escape(mark) + "+", content)), default=0)
        line = mark * max(3, longest + 1)
        body = content if content.endswith("\n") or not content else content + "\n"
        return f"{line}{info}\n{body}{line}\n"

    def add(self, name, body):
        """Adds an action."""
        self.actions.append(f"### `{name}`\n{body}")
        self.count[name] = self.count.get(name, 0) + 1

    def path(self, path):
        """Returns a path as a plan names it."""
        simple = re.fullmatch(r"[A-Za-z0-9._/+-]+", path)
        return f"[{path}](/{path})" if simple else f"`{path}`"

    def create(self, path, text, overwrite=False):
        """Writes a whole file."""
        fields = [f"- **File Path:** {self.path(path)}", "- **Description:** Write it."]
        if overwrite:
            fields.append("- **Overwrite:** true")
        if text and not text.endswith("\n"):
            fields.append("- **Final Newline:** no")
        if "\r\n" in text and "\n" not in text.replace("\r\n", "") and self.dice.random() < 0.5:
            fields.append("- **Line Endings:** CRLF")
            text = text.replace("\r\n", "\n")
        self.add("CREATE", "\n".join(fields) + "\n\n" + self.fence(text, "text"))

    def execute(self, script, why):
        """Runs a script."""
        self.add("EXECUTE", f"- **Description:** {why}\n- **Expected Outcome:** It is so.\n\n" + self.fence(script, "shell"))

    def edit(self, path, pairs):
        """Replaces places in a file."""
        body = f"- **File Path:** {self.path(path)}\n- **Description:** Change it.\n"
        for find, replace in pairs:
            body += "\n`FIND:`\n" + self.fence(find) + "`REPLACE:`\n" + self.fence(replace)
        self.add("EDIT", body)

    def binary(self, path, content):
        """Writes bytes."""
        lines = base64.encodebytes(content).decode()
        folder = path.rpartition("/")[0]
        make = f"mkdir -p {shlex.quote(folder)}\n" if folder else ""
        self.execute(f"{make}base64 -d > {shlex.quote(path)} <<'END'\n{lines}END\n", "Write bytes.")

    def render(self):
        """Returns the plan's text."""
        head = f"# {self.title}\n- **Status:** Green\n- **Plan Type:** Implementation\n- **Agent:** Developer\n\n"
        return head + "## Rationale\n```text\nA version of a package.\n```\n\n## Action Plan\n\n" + "\n".join(self.actions)


def occurrences(lines, wanted):
    """Returns how often some lines stand in others, overlapping ones included."""
    first = [at for at, line in enumerate(lines) if line == wanted[0]]
    return sum(lines[at:at + len(wanted)] == wanted for at in first)


def pairs_for(old, new, dice):
    """Returns FIND and REPLACE pairs that make `new` of `old`, or None where a whole file is simpler."""
    before, after = old.split("\n"), new.split("\n")
    if before[-1] != "" or after[-1] != "":
        return None
    before, after = before[:-1], after[:-1]
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=len(before) > 3000)
    hunks = [op for op in matcher.get_opcodes() if op[0] != "equal"]
    if len(hunks) > 60:
        return None
    pairs, done_old, done_new = [], 0, 0
    for _, i1, i2, j1, j2 in hunks:
        # What the file says once the pairs so far are applied.
        now = after[:j1] + before[i1:]
        start, end = j1, j1 + (i2 - i1)
        while start == end or not "".join(now[start:end]).strip() or occurrences(now, now[start:end]) != 1:
            if start > 0 and (dice.random() < 0.6 or end == len(now)):
                start -= 1
            elif end < len(now):
                end += 1
            else:
                return None
        low, high = j1 - start, end - (j1 + (i2 - i1))
        find = now[start:end]
        replace = now[start:start + low] + after[j1:j2] + now[end - high:end]
        pair = inside_a_line(find, replace, now, dice) or ("\n".join(find) + "\n", "".join(line + "\n" for line in replace))
        if pair[0] == pair[1]:
            return None
        pairs.append(pair)
    return pairs


def inside_a_line(find, replace, now, dice):
    """Returns a pair that names a part of a line, if dice and text allow."""
    if len(find) != 1 or len(replace) != 1 or dice.random() < 0.5:
        return None
    old, new = find[0], replace[0]
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    part, rest = old[max(0, start - 10):], new[max(0, start - 10):]
    whole = "\n".join(now) + "\n"
    if len(part) > 3 and part != old and part.strip() and rest.strip() and whole.count(part) == 1 and part not in now and "\r" not in part + rest:
        return part + "\n", rest + "\n"
    return None


def without_folder(path):
    """Returns the command that removes the folders that are empty without a path."""
    folder = path.rpartition("/")[0]
    return f"\nrmdir -p --ignore-fail-on-non-empty -- {shlex.quote(folder)}" if folder else ""


def write_change(plan, change, early, late, moves):
    """Adds the actions of one change."""
    status, old_mode, new_mode, path, target, old, new = change
    quoted = shlex.quote(target)
    if status == "D":
        early.append(f"rm -- {shlex.quote(path)}" + without_folder(path))
        return
    if new_mode == "120000":
        folder = target.rpartition("/")[0]
        late.append(f"rm -rf -- {quoted}" + (f"\nmkdir -p {shlex.quote(folder)}" if folder else ""))
        late.append(f"ln -s -- {shlex.quote(new.decode(errors='surrogateescape'))} {quoted}")
        return
    if status == "T":
        early.append(f"rm -- {quoted}")
    text, before = as_text(new), as_text(old)
    if status == "R":
        if text is not None and before is not None and old != new and is_plain(path) and write_text(plan, path, before, text):
            old = new
        # By another name: the target may be below the source, or the source of another move.
        folder, aside = target.rpartition("/")[0], f".moving-{len(moves)}"
        moves.append(f"mv -- {shlex.quote(path)} {aside}" + without_folder(path))
        late.append((f"mkdir -p {shlex.quote(folder)}\n" if folder else "") + f"mv -- {aside} {quoted}")
        if old != new:
            late.append(("bytes", target, new))
    elif old != new or status in "AT":
        fresh = status in "AT"
        if text is None or not is_plain(target) or not write_text(plan, target, None if fresh else before, text, fresh):
            late.append(("bytes", target, new))
    if new_mode == "100755" and (old_mode != new_mode or status != "M"):
        late.append(f"chmod +x -- {quoted}")
    if new_mode == "100644" and old_mode == "100755":
        late.append(f"chmod -x -- {quoted}")


def write_text(plan, path, before, text, fresh=False):
    """Adds CREATE or EDIT; returns whether the file has its text then."""
    if fresh:
        plan.create(path, text)
        return True
    if before == "":
        plan.create(path, text)
        return True
    if text == "" and before and before.strip():
        plan.edit(path, [(before, "")])
        return True
    if before is None or not before.strip():
        plan.create(path, text, overwrite=True)
        return True
    crlf = "\r\n" in before and "\n" not in before.replace("\r\n", "") and "\r" not in text.replace("\r\n", "")
    if crlf and "\n" not in text.replace("\r\n", "") and plan.dice.random() < 0.7:
        pairs = pairs_for(before.replace("\r\n", "\n"), text.replace("\r\n", "\n"), plan.dice)
    elif "\r" in before + text:
        pairs = None
    else:
        pairs = pairs_for(before, text, plan.dice)
    if pairs and plan.dice.random() < 0.95:
        plan.edit(path, pairs)
    else:
        plan.create(path, text, overwrite=True)
    return True


def plan_between(repo, old, new, title, dice):
    """Returns the plan that leads from one commit to another."""
    plan, early, late, moves = Plan(title, dice), [], [], []
    late_actions = Plan(title, dice)
    for change in changes(repo, old, new):
        write_change(late_actions, change, early, late, moves)
    if early:
        plan.execute("set -e\n" + "\n".join(early) + "\n", "Remove files.")
    plan.actions += late_actions.actions
    for name, count in late_actions.count.items():
        plan.count[name] = plan.count.get(name, 0) + count
    if moves:
        plan.execute("set -e\n" + "\n".join(moves) + "\n", "Move files out of the way.")
    scripts = [step for step in late if isinstance(step, str)]
    # What is renamed or linked may be written over by bytes afterwards.
    if scripts and any(step[0] == "bytes" for step in late if not isinstance(step, str)):
        for step in late:
            plan.execute("set -e\n" + step + "\n", "Move or link.") if isinstance(step, str) else plan.binary(step[1], step[2])
    else:
        for step in late:
            if not isinstance(step, str):
                plan.binary(step[1], step[2])
        if scripts:
            plan.execute("set -e\n" + "\n".join(scripts) + "\n", "Move, link, set modes.")
    return plan
