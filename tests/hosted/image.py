#!/usr/bin/env python3
"""Build the image of docker/Dockerfile on a base made here, start it, and run the tour inside.

usage: tests/hosted/image.py [--keep] [--others] [--base FOLDER] [--suite NAME]

Needs root, debootstrap and buildah, which it installs on a Debian. No registry of images is asked: debootstrap makes
the base. Debian's and Python's packages come from where this machine gets its own: its settings of apt and pip are
mounted while the image is built, and are not part of it. Everything lies in build/image, 5 GB, and goes at the end;
the executed notebook stays as build/image/tour.ipynb. --base uses a base that was made before. --others builds the
images of the other Dockerfiles, too.
"""
import argparse
import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORK = ROOT / "build/image"
PROGRAMS = ("debootstrap", "buildah")
AUTHORITIES = "/etc/ssl/certs/ca-certificates.crt"
EPOCH = "1767225600"
# What is looked for in the finished image, by its own shell: each prints what should not be there.
LEFT_BEHIND = {
    "lists of apt": "ls /var/lib/apt/lists",
    "caches": "find / -xdev -type d ( -path '*/.cache/pip' -o -path /var/cache/apt/archives -o -name __host__ )",
    "settings of this machine": "find /etc/pip.conf /etc/apt/apt.conf.d/99host /root/.npmrc /host -type f -size +0",
    "files that everybody may write to": "find / -xdev -type f -perm -o+w -not -path '/proc/*' -not -path '/sys/*'",
    "files of the user outside of home": "find / -xdev -user 1000 -not -path '/home/*' -not -path '/proc/*'",
}


def say(text):
    print(text, flush=True)


@contextlib.contextmanager
def step(title):
    begin = time.monotonic()
    yield
    say(f"{title}: {time.monotonic() - begin:.0f} s")


def run(*command, **options):
    """Run it with its output in build/image/log, whose end is shown when it fails."""
    with open(WORK / "log", "ab") as log:
        log.write(f"\n== {' '.join(map(str, command))}\n".encode())
        log.flush()
        code = subprocess.run([*map(str, command)], stdout=log, stderr=log, check=False, **options).returncode
    if code:
        print("".join((WORK / "log").read_text(errors="replace").splitlines(keepends=True)[-40:]), file=sys.stderr)
        sys.exit(f"{command[0]} failed with {code}; its output is in {WORK / 'log'}")


def output(*command):
    return subprocess.run([*map(str, command)], capture_output=True, text=True, check=True).stdout


def need_programs():
    if os.geteuid() != 0:
        sys.exit("root is needed, because debootstrap and buildah change into folders of the image")
    missing = [name for name in PROGRAMS if not shutil.which(name)]
    if missing and not shutil.which("apt-get"):
        sys.exit(f"install {' and '.join(missing)}")
    install(*missing)


def install(*packages):
    if packages:
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        run("apt-get", "update", env=environment)
        run("apt-get", "install", "-y", "--no-install-recommends", *packages, env=environment)


# --- This machine's settings ------------------------------------------------------------------------------------

def mirror():
    """From where this machine gets Debian's packages."""
    lines = []
    for path in [pathlib.Path("/etc/apt/sources.list"), *sorted(pathlib.Path("/etc/apt/sources.list.d").glob("*"))]:
        with contextlib.suppress(OSError):
            lines += path.read_text(errors="replace").splitlines()
    for line in lines:
        found = re.match(r"\s*(?:URIs:|deb\s+(?:\[[^]]*\]\s+)?)\s*(\S+/debian/?)(?:\s|$)", line)
        if found:
            return found[1]
    sys.exit("/etc/apt/sources.list names no archive of Debian to make a base from: give one with --base")


def setting_files():
    """Files for the time of the build, as (path here, path there)."""
    folder = WORK / "host"
    folder.mkdir(exist_ok=True)
    mounts = []
    lines = output("apt-config", "dump").splitlines() if shutil.which("apt-config") else []
    kept = [line for line in lines if re.match(r"Acquire::(http|https|ftp|Retries|Check)", line)]
    pip, npm = ["[global]", "timeout = 120", "retries = 10"], []
    for line in output(sys.executable, "-m", "pip", "config", "list").splitlines():
        name, _, value = line.partition("=")
        name = name.rpartition(".")[2]
        if name in ("index-url", "extra-index-url", "trusted-host", "proxy"):
            pip.append(f"{name} = {value.strip(chr(39))}")
    if pathlib.Path(AUTHORITIES).exists():
        mounts.append((AUTHORITIES, "/host/authorities.crt"))
        pip.append("cert = /host/authorities.crt")
        kept.append('Acquire::https::CAInfo "/host/authorities.crt";')
        npm.append("cafile = /host/authorities.crt")
    for name, text, there in (("pip.conf", pip, "/etc/pip.conf"), ("apt.conf", kept, "/etc/apt/apt.conf.d/99host"),
                              ("npmrc", npm, "/root/.npmrc")):
        (folder / name).write_text("\n".join(text) + "\n")
        mounts.append((folder / name, there))
    return mounts


def settings():
    return [argument for here, there in setting_files() for argument in ("--volume", f"{here}:{there}:ro")]


# --- The image --------------------------------------------------------------------------------------------------

def buildah(command, *arguments):
    store = ["--root", WORK / "store", "--runroot", WORK / "run", "--storage-driver", "vfs"]
    return ["buildah", *store, command, *arguments]


def bootstrap(suite, folder):
    run("debootstrap", "--variant=minbase", suite, folder, mirror())
    for path in (folder / "var/cache/apt/archives").glob("*.deb"):
        path.unlink()


def make_base(suite, ready):
    folder = pathlib.Path(ready) if ready else WORK / "base"
    if not ready:
        bootstrap(suite, folder)
    name = output(*buildah("from", "scratch")).strip()
    run(*buildah("add", name, f"{folder}/", "/"))
    run(*buildah("config", "--env", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", name))
    run(*buildah("commit", "--rm", name, "localhost/base"))
    if not ready:
        shutil.rmtree(folder)


def build(dockerfile, tag, base):
    run(*buildah("bud", "--isolation", "chroot", "--layers=false", "--timestamp", EPOCH, *settings(),
                 "--build-arg", f"BASE={base}", "--build-arg", f"SOURCE_DATE_EPOCH={EPOCH}",
                 "-f", ROOT / "docker" / dockerfile, "-t", tag, ROOT))


def started(name, *command, volumes=()):
    mounts = [argument for one in volumes for argument in ("--volume", one)]
    return buildah("run", "--isolation", "chroot", *mounts, name, "--", *command)


def tour(name):
    """By the image's own Python, as its own user, who may write to a folder of this machine's."""
    folder = WORK / "tour"
    folder.mkdir()
    os.chown(folder, 1000, 1000)
    run(*started(name, "jupyter", "nbconvert", "--to", "notebook", "--execute", "/notebooks/01-tour.ipynb",
                 "--ExecutePreprocessor.kernel_name=drupe", "--output-dir=/tour", "--output=tour.ipynb",
                 volumes=(f"{ROOT / 'notebooks'}:/notebooks:ro", f"{folder}:/tour")))
    shutil.move(folder / "tour.ipynb", WORK / "tour.ipynb")


def inspect(name):
    problems = []
    who = output(*started(name, "id", "-u")).strip()
    if who != "1000":
        problems.append(f"it runs as user {who}, not as 1000")
    found = output(*started(name, "python", "-m", "drupe", "devices"))
    if "host:cpu" not in found or "opencl:cpu" not in found:
        problems.append(f"its devices are not those of a processor:\n{found}")
    root = pathlib.Path(output(*buildah("mount", name)).strip())
    size = sum(path.lstat().st_size for path in root.rglob("*") if not path.is_dir() or path.is_symlink())
    for what, command in LEFT_BEHIND.items():
        command = command.replace("( ", "\\( ").replace(" )", " \\)")
        found = output(*started(name, "sh", "-c", f"{command} 2>/dev/null || true")).split()
        if found:
            problems.append(f"{what}: {' '.join(found[:5])}")
    return size, problems


def clean():
    if (WORK / "store").exists():
        subprocess.run([*map(str, buildah("umount", "--all"))], capture_output=True, check=False)
        subprocess.run([*map(str, buildah("rm", "--all"))], capture_output=True, check=False)
    for name in ("store", "run", "base", "host", "tour"):
        shutil.rmtree(WORK / name, ignore_errors=True)


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keep", action="store_true", help="leave the image in build/image/store")
    parser.add_argument("--others", action="store_true", help="build the other Dockerfiles, too")
    parser.add_argument("--base", help="the folder of a base that debootstrap made")
    parser.add_argument("--suite", default="bookworm", help="Debian's release")
    options = parser.parse_args(arguments)
    WORK.mkdir(parents=True, exist_ok=True)
    (WORK / "log").write_bytes(b"")
    need_programs()
    clean()
    try:
        with step("base"):
            make_base(options.suite, options.base)
        with step("image"):
            build("Dockerfile", "localhost/drupe", "localhost/base")
        name = output(*buildah("from", "--pull-never", "localhost/drupe")).strip()
        with step("the tour inside"):
            tour(name)
        size, problems = inspect(name)
        for path in sorted((ROOT / "docker").glob("Dockerfile.*")) if options.others else []:
            with step(path.name):
                build(path.name, f"localhost/drupe-{path.suffix[1:]}", "localhost/drupe")
        say(f"the image has {size / 1e6:.0f} MB of files")
        for problem in problems:
            say(f"FAIL {problem}")
        return 1 if problems else 0
    finally:
        if not options.keep:
            clean()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
