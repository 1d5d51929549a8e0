#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Wrong requests, made of the server's own description, over a unix socket: each
parameter with values that it cannot have, twice, and misspelt. The answer must be 400
and name the parameter. Prints what is not so.

    api_wrong.py OPENAPI.json SOCKET"""
import http.client
import json
import socket
import sys
import urllib.parse

# Of texts that may be anything, or numbers that may be large.
ANY = {"life", "sample_type", "by", "comm", "thread", "exe", "container", "cgroup",
       "unit", "process", "image", "under", "entry", "argv", "label_prefix", "labels",
       "service"}
FLAGS = {"all", "follow", "early", "id"}
LONG = "x" * 5000


class Unix(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(30)
        self.sock.connect(sys.argv[2])


def ask(path, pairs):
    c = Unix("profd")
    c.request("GET", path + "?" + urllib.parse.urlencode(pairs))
    r = c.getresponse()
    out = r.status, r.read(4096).decode(errors="replace")
    c.close()
    return out


def values(name):
    plain = name.removeprefix("not-")
    if plain in FLAGS:
        return []
    if plain in ANY:
        return [] if plain in ("labels", "label_prefix") else ["", LONG]
    return ["", "\0", "-1e99", "no", "1;2", "%", "\u202e1", LONG]


def main():
    description = json.load(open(sys.argv[1]))
    n = bad = 0

    def wrong(path, pairs, name):
        nonlocal n, bad
        n += 1
        status, text = ask(path, pairs)
        if status != 400 or not text.startswith(name):
            bad += 1
            print(path, [(k, v[:20]) for k, v in pairs], status, text.strip()[:80])

    for path, item in description["paths"].items():
        path = path.replace("{id}", "1")
        names = [p["name"] for p in item["get"]["parameters"] if p["in"] == "query"]
        wrong(path, [("nosuch", "1")], "nosuch")
        for name in names:
            wrong(path, [(name + "x", "1")], name + "x")
            for value in values(name):
                # A NUL in a URL is refused before its parameters are read.
                wrong(path, [(name, value)], "a URL" if "\0" in value else name)
    print(f"{n} requests, {bad} not as they should be")
    return bad != 0 or n < 100


sys.exit(main())
