"""Published packages as git histories: each version's files are a commit, in the order of publication."""

import hashlib
import io
import json
import os
import random
import re
import shutil
import subprocess
import tarfile
import urllib.request

GIT_ENV = {
    "PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "Replay", "GIT_AUTHOR_EMAIL": "replay@localhost", "GIT_AUTHOR_DATE": "2026-01-02T03:04:05+00:00",
    "GIT_COMMITTER_NAME": "Replay", "GIT_COMMITTER_EMAIL": "replay@localhost", "GIT_COMMITTER_DATE": "2026-01-02T03:04:05+00:00",
}


def git(folder, *args, text=True, **env):
    """Runs git and returns what it printed."""
    done = subprocess.run(["git", *args], cwd=folder, env={**GIT_ENV, **env}, capture_output=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"git {args}: {done.stderr.decode(errors='replace')}")
    return done.stdout.decode().strip() if text else done.stdout


def fetch(url, cache):
    """Returns what is at an address; kept in the cache folder if it is not a file."""
    if url.startswith("/"):
        with open(url, "rb") as file:
            return file.read()
    path = os.path.join(cache, hashlib.sha256(url.encode()).hexdigest()[:24])
    if not os.path.exists(path):
        with urllib.request.urlopen(url, timeout=120) as answer:
            content = answer.read()
        with open(path + ".part", "wb") as file:
            file.write(content)
        os.replace(path + ".part", path)
    with open(path, "rb") as file:
        return file.read()


def crate_versions(name, cache):
    """Returns version and address of each version of a crate, oldest first."""
    folder = {1: "1", 2: "2", 3: f"3/{name[:1]}"}.get(len(name), f"{name[:2]}/{name[2:4]}")
    lines = fetch(f"{os.environ['CRATE_INDEX']}/{folder}/{name}", cache).decode().splitlines()
    versions = [json.loads(line)["vers"] for line in lines]
    return [(v, f"{os.environ['CRATE_FILES']}/{name}/{name}-{v}.crate") for v in versions]


def python_versions(name, cache):
    """Returns version and address of each source archive of a Python package, as the index lists them."""
    page = fetch(f"{os.environ['PYTHON_INDEX']}/{name}/", cache).decode()
    found = re.findall(r'href="([^"#]+/([^/"#]+)\.tar\.gz)', page)
    return [(stem, url) for url, stem in found]


def archives(folder, _cache):
    """Returns the archives in a folder, oldest first: what `cargo fetch` or `pip download` left there."""
    number = lambda name: [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]
    names = sorted((name for name in os.listdir(folder) if name.endswith((".crate", ".tar.gz"))), key=number)
    return [(name.removesuffix(".crate").removesuffix(".tar.gz"), os.path.join(os.path.abspath(folder), name)) for name in names]


def versions(package, cache):
    """Returns the versions of `crate:name`, `python:name` or `files:folder`."""
    kind, name = package.split(":", 1)
    return {"crate": crate_versions, "python": python_versions, "files": archives}[kind](name, cache)


def unpack(archive, folder):
    """Puts the files of an archive, without its top folder, in the place of those that are in a worktree."""
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        if name != ".git":
            shutil.rmtree(path) if os.path.isdir(path) and not os.path.islink(path) else os.unlink(path)
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        for member in tar:
            _, _, path = member.name.partition("/")
            parts = path.split("/")
            if not path or ".." in parts or ".git" in parts or parts[0] == ".teddy" or not (member.isfile() or member.issym()):
                continue
            target = os.path.join(folder, path)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            if member.issym():
                os.symlink(member.linkname, target)
                continue
            with open(target, "wb") as file:
                file.write(tar.extractfile(member).read())
            os.chmod(target, 0o755 if member.mode & 0o100 else 0o644)


def shake(folder, dice):
    """Changes a few files in the ways that published packages rarely do."""
    files = git(folder, "ls-files", "-z", text=False).decode(errors="surrogateescape").split("\0")[:-1]
    plain = [f for f in files if os.path.isfile(os.path.join(folder, f)) and not os.path.islink(os.path.join(folder, f))]
    for path in dice.sample(plain, min(8, len(plain))):
        full = os.path.join(folder, path)
        with open(full, "rb") as file:
            content = file.read()
        way = dice.randrange(9)
        if way == 0:
            os.chmod(full, 0o755)
        elif way == 1:
            os.rename(full, full + ".moved")
        elif way == 2:
            os.unlink(full)
            os.symlink("somewhere/" + os.path.basename(path), full)
        elif way == 3:
            content = content.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
        elif way == 4:
            content = content.rstrip(b"\n")
        elif way == 5:
            content = b""
        elif way == 6:
            content += bytes(dice.randrange(256) for _ in range(300))
        elif way == 7:
            os.unlink(full)
            os.makedirs(full)
            full += "/inside ``` [odd] (name).txt"
        else:
            os.unlink(full)
        if way in (3, 4, 5, 6, 7):
            with open(full, "wb") as file:
                file.write(content)


def history(package, folder, cache, limit):
    """Makes a repository with the last `limit` versions of a package; returns `(name, commit, tree)` of each step."""
    git(os.path.dirname(folder), "init", "-q", "-b", "main", folder)
    steps, seen, dice = [], None, random.Random(package)
    for version, url in versions(package, cache):
        try:
            archive = fetch(url, cache)
            unpack(archive, folder)
        except (OSError, tarfile.TarError):
            continue  # Withdrawn, or an archive of another kind.
        steps.append(record(folder, version))
        if len(steps) % 4 == 3:
            shake(folder, dice)
            steps.append(record(folder, version + " shaken"))
        if len(steps) > 3 * limit:
            break
    kept = []
    for step in steps:
        if step[2] != seen:
            kept.append(step)
        seen = step[2]
    return kept[-limit - 1:]


def record(folder, name):
    """Commits every file that git's ignore rules leave, whatever was tracked before."""
    git(folder, "read-tree", "--empty")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "--allow-empty", "-m", name)
    return name, git(folder, "rev-parse", "HEAD"), git(folder, "rev-parse", "HEAD^{tree}")
