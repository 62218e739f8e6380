"""Environments and data of bench/peers/loaders.py."""

import json
import os
import shutil
import subprocess

import loader_cases
import loader_data

_HERE = os.path.dirname(os.path.abspath(__file__))
_PYTHON = "/usr/bin/python3"


def count_of(options, data):
    return loader_cases.DATA[data][1] // (16 if options.quick else 1)


def folder_of(options, data):
    return os.path.join(options.work, f"{data}-{count_of(options, data)}")


def python_of(options, environment):
    if not loader_cases.PACKAGES[environment]:
        return _PYTHON
    return os.path.join(options.work, f"venv-{environment}", "bin", "python")


def _reason(log):
    """The line of pip's output that says what is wrong."""
    with open(log, encoding="utf-8", errors="replace") as file:
        lines = [line.strip() for line in file if line.strip()]
    telling = [line for line in lines if "Error: " in line or line.startswith("ERROR: ")]
    return (telling or lines or ["pip was ended"])[-1]


def install(options, environment):
    """None, or why not. What has failed is tried again by each call."""
    packages = loader_cases.PACKAGES[environment]
    folder = os.path.join(options.work, f"venv-{environment}")
    done = os.path.join(folder, "installed")
    if not packages or os.path.exists(done):
        return None
    shutil.rmtree(folder, ignore_errors=True)
    log = folder + ".log"
    with open(log, "w", encoding="utf-8") as file:
        try:
            subprocess.run([_PYTHON, "-m", "venv", "--system-site-packages", folder], check=True,
                           stdout=file, stderr=file)
            subprocess.run([os.path.join(folder, "bin", "pip"), "install", "--no-input",
                            "--disable-pip-version-check", "--quiet", *packages], check=True,
                           stdout=file, stderr=file, timeout=1200)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
            file.flush()
            return _reason(log)
    with open(done, "w", encoding="utf-8"):
        return None


def _versions(options, environment):
    """Of the packages themselves, and what they run on."""
    code = ("import importlib.metadata as m, json, sys\n"
            "found = {}\n"
            "for name in sys.argv[1:]:\n"
            "    try: found[name] = m.version(name)\n"
            "    except m.PackageNotFoundError: pass\n"
            "print(json.dumps(found))")
    names = ["numpy", "torch", "torchvision", "h5py", "lmdb", *loader_cases.PACKAGES[environment]]
    output = subprocess.run([python_of(options, environment), "-c", code, *names], check=True,
                            capture_output=True, text=True).stdout
    return json.loads(output)


def _make_data(options, environment, data, say):
    """Why not, or None. A form that is whole has a mark."""
    folder = folder_of(options, data)
    os.makedirs(folder, exist_ok=True)
    mark = os.path.join(folder, f"{environment}.made")
    if os.path.exists(mark):
        return None
    count = count_of(options, data)
    say(f"making {data} for {environment}: {count} samples")
    if environment == "torch":
        _make_sums(folder, data, count)
        names = ["lmdb", "data.h5"]
    else:
        names = [loader_data.FORMATS[environment]]
    for name in names:
        path = os.path.join(folder, name)
        shutil.rmtree(path) if os.path.isdir(path) else os.path.exists(path) and os.remove(path)
    done = subprocess.run(
        [python_of(options, environment), os.path.join(_HERE, "loader_worker.py"), "make", data,
         folder, environment, str(count)], check=False, capture_output=True, text=True,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONDONTWRITEBYTECODE": "1"})
    if done.returncode != 0:
        return (done.stderr.strip().splitlines() or ["it ended with an error"])[-1]
    os.sync()
    with open(mark, "w", encoding="utf-8"):
        return None


def _make_sums(folder, data, count):
    import numpy

    import loader_worker
    with open(os.path.join(folder, "count"), "w", encoding="ascii") as file:
        file.write(str(count))
    if data in loader_cases.RAW:
        images = (numpy.frombuffer(loader_data.image(data, i), numpy.uint8) for i in range(count))
        sums = [loader_worker.checksums(image[numpy.newaxis])[0] for image in images]
        numpy.save(os.path.join(folder, "sums.npy"), numpy.array(sums, numpy.uint64))


def prepare(options, say):
    """({environment: why it is left out}, {environment: {package: version}})"""
    os.makedirs(options.work, exist_ok=True)
    missing, versions = {}, {}
    for environment in loader_cases.PACKAGES:
        used = environment in {loader_cases.PEERS[peer][0] for peer in options.peers}
        if not used and environment != "ffcv":
            continue
        made = os.path.join(options.work, f"venv-{environment}", "installed")
        if loader_cases.PACKAGES[environment] and not os.path.exists(made):
            say(f"environment {environment}")
        reason = install(options, environment)
        if reason is None:
            versions[environment] = _versions(options, environment)
        else:
            missing[environment] = f"does not install: {reason}"
            say(f"{environment} does not install: {reason}")
    needed = {case.data for case in loader_cases.CASES if case.name in options.cases}
    for data in sorted(needed):
        users = {loader_cases.PEERS[peer][0] for peer in options.peers
                 if data in loader_cases.PEERS[peer][1]} | {"torch"}
        for environment in sorted(users - set(missing)):
            if environment != "torch" and environment not in loader_data.MAKERS:
                continue
            reason = _make_data(options, environment, data, say)
            if reason is not None:
                missing[environment] = f"could not write {data}: {reason}"
                say(f"{environment} {missing[environment]}")
    return missing, versions
