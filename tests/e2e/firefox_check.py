#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""firefox_check.py FILE SUM: whether a file is a processed profile of the Firefox
Profiler, version 48: each table has the columns of its src/types/profile.js, all of one
length, indices are of rows that exist, prefixes come before what they are a prefix of,
times do not go back, and the weights are SUM in all."""
import json
import sys

TABLES = {
    "samples": {"stack": "stackTable?", "time": float, "weight": float},
    "stackTable": {"frame": "frameTable", "category": "categories", "subcategory": int,
                   "prefix": "stackTable?"},
    "frameTable": {"address": int, "inlineDepth": int, "category": "categories",
                   "subcategory": int, "func": "funcTable", "nativeSymbol": None,
                   "innerWindowID": int, "implementation": None, "line": "int?",
                   "column": None},
    "funcTable": {"name": "strings", "isJS": bool, "relevantForJS": bool,
                  "resource": "resourceTable-", "fileName": "strings?",
                  "lineNumber": None, "columnNumber": None},
    "resourceTable": {"lib": "libs", "name": "strings", "host": None, "type": int},
    "nativeSymbols": {"libIndex": int, "address": int, "name": int,
                      "functionSize": int},
    "markers": {"data": None, "name": int, "startTime": float, "endTime": float,
                "phase": int, "category": int},
}
THREAD = {"processType": str, "name": str, "processName": str, "pid": str, "tid": int,
          "isMainThread": bool, "processStartupTime": int, "registerTime": int,
          "pausedRanges": list, "stringArray": list}


def check_value(kind, value, lengths, where):
    if kind is None:
        assert value is None, (where, value)
    elif kind == "int?":
        assert value is None or isinstance(value, int), (where, value)
    elif isinstance(kind, str):
        if kind[-1] == "?" and value is None or kind[-1] == "-" and value == -1:
            return
        assert isinstance(value, int), (where, value)
        assert 0 <= value < lengths[kind.rstrip("?-")], (where, value)
    elif kind is float:
        assert isinstance(value, (int, float)), (where, value)
    else:
        assert type(value) is kind, (where, value)


def check_thread(thread, profile):
    for key, kind in THREAD.items():
        assert type(thread[key]) is kind, (key, thread[key])
    lengths = {name: thread[name]["length"] for name in TABLES}
    lengths["strings"] = len(thread["stringArray"])
    lengths["libs"] = len(profile["libs"])
    lengths["categories"] = len(profile["meta"]["categories"])
    for name, columns in TABLES.items():
        table = thread[name]
        extra = set(table) - set(columns) - {"length", "weightType"}
        assert not extra, (name, extra)
        for column, kind in columns.items():
            assert len(table[column]) == table["length"], (name, column)
            for value in table[column]:
                check_value(kind, value, lengths, name + "." + column)
    assert all(isinstance(s, str) for s in thread["stringArray"])
    for i, prefix in enumerate(thread["stackTable"]["prefix"]):
        assert prefix is None or prefix < i, ("prefix", i, prefix)
    times = thread["samples"]["time"]
    assert times == sorted(times), "times"
    assert thread["samples"]["weightType"] in ("samples", "tracing-ms", "bytes")
    return sum(thread["samples"]["weight"])


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        profile = json.load(file)
    meta = profile["meta"]
    assert meta["preprocessedProfileVersion"] == 48
    assert any(c["color"] == "grey" for c in meta["categories"])
    for key in ("interval", "startTime", "processType", "product", "stackwalk",
                "version", "markerSchema", "extensions", "symbolicated"):
        assert key in meta, key
    for lib in profile["libs"]:
        for key in ("name", "path", "debugName", "debugPath", "arch", "breakpadId",
                    "codeId"):
            assert key in lib, key
    assert profile["threads"]
    weight = sum(check_thread(t, profile) for t in profile["threads"])
    assert weight == float(sys.argv[2]), weight


main()
