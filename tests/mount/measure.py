#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Measures weft-mount beside its peers on the S3 server of the tests, in turns.

measure.py --server COMMAND --peer NAME=COMMAND... [--rounds N] [--limit SECONDS] [--out FILE]
           LOAD...

Loads: list (ls -l of many keys at 30 ms), stream (one reader of 1 GiB at 30 ms, 90 MB/s for each
connection and 800 MB/s in all), random (128 KiB anywhere in 4 GiB, 16 jobs of fio at 30 ms). Peers
are weft, mountpoint, mountpoint-ttl (names stay valid for a minute), rclone and s3fs; each has a
fresh mount for each run. A run that takes longer than the limit counts as the limit. Prints a table
of medians with their spread, and ratios to the best peer; --out takes every run as JSON.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

KEYS = {
    "AWS_ACCESS_KEY_ID": "weft",
    "AWS_SECRET_ACCESS_KEY": "weft-secret",
    "AWSACCESSKEYID": "weft",
    "AWSSECRETACCESSKEY": "weft-secret",
    "AWS_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}
WAN = {"first_byte_ms": 30, "connection_rate": 90_000_000, "total_rate": 800_000_000}


class Server:
    """The S3 server, with what the loads read."""

    def __init__(self, command):
        self.process = subprocess.Popen(
            [command, "--bucket", "data", "--counted-etags"], stdout=subprocess.PIPE, text=True
        )
        self.url = self.process.stdout.readline().strip()

    def control(self, method, path, value=None):
        data = None if value is None else json.dumps(value).encode()
        request = urllib.request.Request(f"{self.url}/-/{path}", data=data, method=method)
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)

    def fill(self, prefix, count, size):
        value = {"bucket": "data", "prefix": prefix, "count": count, "size": size}
        self.control("POST", "objects", value)


class Mount:
    """One mount of a peer, until `close`."""

    def __init__(self, name, command, url):
        self.folder = tempfile.mkdtemp(prefix="measure-")
        self.cache = tempfile.mkdtemp(prefix="measure-cache-")
        words = self.words(name, command, url)
        self.log = open(os.path.join(self.cache, "log"), "w+")
        self.process = subprocess.Popen(
            words, stdout=self.log, stderr=self.log, env={**os.environ, **KEYS}
        )
        until = time.monotonic() + 30
        while not os.path.ismount(self.folder):
            if self.process.poll() is not None or time.monotonic() > until:
                self.log.seek(0)
                said = self.log.read()[-500:]
                self.close()
                raise RuntimeError(f"{name} did not mount: {said}")
            time.sleep(0.02)

    def words(self, name, command, url):
        folder = self.folder
        if name == "weft":
            return [command, "data", folder, "--endpoint-url", url, "--foreground"]
        if name == "mountpoint":
            return [command, url, "data", folder]
        if name == "mountpoint-ttl":
            return [command, url, "data", folder, "10", "60"]
        if name == "s3fs":
            options = f"url={url},use_path_request_style,enable_noobj_cache"
            return [command, "data", folder, "-f", "-o", options]
        if name == "rclone":
            return [
                *[command, "mount", ":s3:data", folder, "--s3-provider", "Other"],
                *["--s3-endpoint", url, "--s3-env-auth", "--s3-force-path-style"],
                *["--vfs-cache-mode", "full", "--cache-dir", self.cache],
                *["--use-server-modtime", "--config", "/dev/null"],
            ]
        raise ValueError(f"no such peer: {name}")

    def close(self):
        subprocess.run(["umount", self.folder], stderr=subprocess.DEVNULL)
        if os.path.ismount(self.folder):
            subprocess.run(["umount", "-l", self.folder])
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.rmdir(self.folder)
        shutil.rmtree(self.cache)


def timed(limit, words):
    """Seconds that a command took, at most the limit; and its output."""
    begin = time.monotonic()
    process = subprocess.Popen(words, stdout=subprocess.PIPE)
    try:
        output, _ = process.communicate(timeout=limit)
        if process.returncode != 0:
            raise RuntimeError(f"{words} failed")
        return time.monotonic() - begin, output
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return float(limit), None


def list_keys(folder, limit, size):
    seconds, output = timed(limit, ["ls", "-l", f"{folder}/many-{size}"])
    lines = 0 if output is None else output.count(b"\n")
    if output is not None and lines != size + 1:
        raise RuntimeError(f"{lines} lines for {size} keys")
    return {"seconds": seconds, "capped": output is None}


def stream(folder, limit, size):
    words = ["dd", f"if={folder}/stream", "of=/dev/null", "bs=1M", "status=none"]
    seconds, output = timed(limit, words)
    return {"seconds": seconds, "MB/s": size / seconds / 1e6, "capped": output is None}


def random_reads(folder, limit, _):
    words = [
        *["fio", "--name=r", f"--filename={folder}/random", "--rw=randread", "--bs=128k"],
        *["--numjobs=16", "--ioengine=psync", "--size=4g", "--time_based", "--runtime=5"],
        *["--readonly", "--group_reporting", "--output-format=json", "--thread"],
    ]
    seconds, output = timed(limit, words)
    if output is None:
        return {"MB/s": 0.0, "asked": 0, "capped": True}
    job = json.loads(output[output.index(b"{"):])["jobs"][0]["read"]
    return {
        "MB/s": job["io_bytes"] / job["runtime"] / 1e3,
        "asked": job["io_bytes"],
        "capped": False,
    }


LOADS = {
    "list": (list_keys, {"first_byte_ms": 30}, 100_000, "seconds"),
    "list-2000": (list_keys, {"first_byte_ms": 30}, 2_000, "seconds"),
    "stream": (stream, WAN, 1 << 30, "MB/s"),
    "random": (random_reads, WAN, 4 << 30, "MB/s"),
}


def fill(server):
    for name in ("list", "list-2000"):
        server.fill(f"many-{LOADS[name][2]}/", LOADS[name][2], 4096)
    server.fill("stream", 1, LOADS["stream"][2])
    server.fill("random", 1, LOADS["random"][2])


def run(server, load, name, command, limit):
    """One run of a peer: what it took, and what the server counted."""
    work, settings, size, _ = LOADS[load]
    server.control("DELETE", "faults")
    server.control("POST", "faults", settings)
    mount = Mount(name, command, server.url)
    try:
        server.control("DELETE", "counters")
        found = work(mount.folder, limit, size)
        counts = server.control("GET", "counters")
    finally:
        server.control("DELETE", "faults")
        mount.close()
    found.update(load=load, peer=name, requests=counts["requests"])
    found["fetched"] = counts["sent_bytes"]
    return found


def table(runs):
    """Medians with their spread, and the ratio of weft to the best peer, as Markdown."""
    lines = []
    for load in dict.fromkeys(run["load"] for run in runs):
        unit = LOADS[load][3]
        lines += [f"\n{load}, {unit}:\n"]
        lines += ["| peer | median | least to most | runs | fetched / asked | requests |"]
        lines += ["|---|---:|---|---:|---:|---|"]
        medians = {}
        for peer in dict.fromkeys(run["peer"] for run in runs if run["load"] == load):
            mine = [run for run in runs if run["load"] == load and run["peer"] == peer]
            values = sorted(run[unit] for run in mine)
            median = medians[peer] = statistics.median(values)
            size = LOADS[load][2]
            ratio = statistics.median(
                run["fetched"] / (run.get("asked") or size) for run in mine
            )
            more = "more than " if any(run["capped"] for run in mine) else ""
            requests = ", ".join(
                f"{count} {name}" for name, count in sorted(mine[-1]["requests"].items())
            )
            lines.append(
                f"| {peer} | {more}{median:.3g} | {values[0]:.3g} to {values[-1]:.3g} | "
                f"{len(values)} | {ratio:.2f} | {requests} |"
            )
        others = [value for peer, value in medians.items() if peer != "weft"]
        if "weft" in medians and others:
            best = min(others) if unit == "seconds" else max(others)
            lines.append(f"\nweft / best peer: {medians['weft'] / best:.3g}")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--server", required=True, help="weft-bucket-server, optimised")
    parser.add_argument("--peer", action="append", required=True, help="NAME=COMMAND")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--limit", type=float, default=120, help="seconds that a run may take")
    parser.add_argument("--out", help="a file for all runs as JSON")
    parser.add_argument("loads", nargs="+", choices=LOADS)
    arguments = parser.parse_args()
    peers = dict(peer.split("=", 1) for peer in arguments.peer)
    server = Server(arguments.server)
    runs = []
    try:
        fill(server)
        for load in arguments.loads:
            for turn in range(arguments.rounds):
                for name, command in peers.items():
                    runs.append(run(server, load, name, command, arguments.limit))
                    print(turn, json.dumps(runs[-1])[:200], file=sys.stderr)
    finally:
        server.process.terminate()
        server.process.wait()
    if arguments.out:
        with open(arguments.out, "w") as file:
            json.dump(runs, file, indent=1)
    print(table(runs))


if __name__ == "__main__":
    main()
