#!/usr/bin/env python3
"""tcp_compare.py DIRECTORY PORT SERVERS: events of TCP in the namespaces c and s, beside

- what nstat counts there (c.nstat, s.nstat),
- segments that tcpdump sees leave them (c.pcap, lo.pcap, s.pcap),
- totals of connections that ss shows before they are closed (c.ss, s.ss),
- results that the programs of tcp_load.py had (c.results),
- retransmits that prog_retransmits sees at the same tracepoint (witness).

SERVERS are the pids that listen, as NAMESPACE=PID. A line a comparison; status 1 if one
differs. A retransmit is compared with the witness only: some kernels leave tracepoints out
for some milliseconds while hooks are attached and detached. How many segments the counters
have beyond that is printed, and allowed for in totals. A SYN that is answered again is in
TcpRetransSegs, and no event; their number is that of tcpdump."""

import collections
import json
import re
import struct
import sys

ADDRESSES = {"c": {"10.213.1.1", "fd00:213::1", "127.0.0.1", "127.77.0.1", "::1"},
             "s": {"10.213.1.2", "fd00:213::2"}}
FIN, SYN, RST, ACK = 1, 2, 4, 16
failed = 0


def compare(what, *values):
    global failed
    same = len({v for _, v in values}) == 1
    failed += not same
    print(f"{'same' if same else 'DIFFER'}: {what}: " +
          ", ".join(f"{who} {v}" for who, v in values))


def split(end):
    address, port = end.rsplit(":", 1)
    return address.strip("[]"), int(port)


def where_of(end):
    """The namespace."""
    address = split(end)[0]
    return next((w for w, a in ADDRESSES.items() if address in a), None)


class Event:
    def __init__(self, o):
        self.name = o["name"]
        self.pid = o.get("pid")
        self.src, self.dst = o["fd"].get("src", ":0"), o["fd"].get("dst", ":0")
        self.role = o["fd"].get("role")
        self.v = {a["key"]: a["value"] for a in o["attributes"]}
        self.failed = o.get("failed", False)
        self.where = where_of(self.src)


def events_of(directory, ports):
    events, lost = collections.defaultdict(list), collections.Counter()
    for line in open(f"{directory}/events"):
        o = json.loads(line)
        lost.update(o.get("lost", {}))
        if "fd" not in o:
            continue
        e = Event(o)
        if e.where and {split(e.src)[1], split(e.dst)[1]} & ports:
            events[e.where].append(e)
    compare("lost events",
            ("profd", " ".join(f"{n} {k}" for n, k in lost.items())), ("none", ""))
    return events


# --- segments -----------------------------------------------------------------------

def packets(path):
    """(source, destination, flags, sequence number, length) of segments of TCP."""
    data = open(path, "rb").read()
    network = struct.unpack_from("<I", data, 20)[0]
    skip = {1: 14, 101: 0, 12: 0}[network]
    at = 24
    while at + 16 <= len(data):
        _, _, n, _ = struct.unpack_from("<IIII", data, at)
        p = data[at + 16 + skip:at + 16 + n]
        at += 16 + n
        if p[0] >> 4 == 4:
            total, head = struct.unpack_from(">H", p, 2)[0], (p[0] & 15) * 4
            ends = p[12:16], p[16:20]
        else:
            total, head = struct.unpack_from(">H", p, 4)[0] + 40, 40
            ends = p[8:24], p[24:40]
        sport, dport, seq, _, off, flags = struct.unpack_from(">HHIIBB", p, head)
        yield ((ends[0], sport), (ends[1], dport), flags, seq, total - head - (off >> 4) * 4)


class Sent:
    """What left a namespace."""

    def __init__(self):
        self.syns = self.resets = self.again = self.syns_again = self.answers_again = 0
        self.next = {}

    def segment(self, flow, flags, seq, n):
        n += bool(flags & SYN) + bool(flags & FIN)
        if flags & RST:
            self.resets += 1
            return
        first = flags & (SYN | ACK) == SYN
        self.syns += first
        if flags & SYN and self.next.get(flow, (None,))[0] != seq:
            self.next[flow] = (seq, n)  # a new connection
            return
        if not n or flow not in self.next:
            return
        begin, length = self.next[flow]
        if (seq - begin) % 2**32 < length:
            self.syns_again += first
            if flags & SYN and not first:
                self.answers_again += 1
            else:
                self.again += 1
        self.next[flow] = (begin, max(length, (seq + n - begin) % 2**32))


def sent_of(directory, where):
    sent = Sent()
    mine = {struct.pack(">4B", *map(int, a.split("."))) for a in ADDRESSES[where] if "." in a}
    six = {"fd00:213::1": b"\xfd\0\x02\x13" + b"\0" * 11 + b"\1",
           "fd00:213::2": b"\xfd\0\x02\x13" + b"\0" * 11 + b"\2",
           "::1": b"\0" * 15 + b"\1"}
    mine |= {six[a] for a in ADDRESSES[where] if ":" in a}
    for name in (where, "lo") if where == "c" else (where,):
        for src, dst, flags, seq, n in packets(f"{directory}/{name}.pcap"):
            if src[0] in mine:
                sent.segment((src, dst), flags, seq, n)
    return sent


# --- comparisons --------------------------------------------------------------------

def segs(events, *states):
    return sum(e.v["segs"] for e in events if e.name == "tcp_retransmit_skb" and
               (not states or e.v["state"] in states))


def changes(events, old, new):
    return sum(e.name == "tcp_set_state" and e.v["new_state"] == new and
               (not old or e.v["old_state"] in old) for e in events)


def witnessed(directory, ports):
    """By namespace and connection: events, segments."""
    seen = collections.defaultdict(dict)
    for line in open(f"{directory}/witness"):
        src, *words = line.split()
        if src == "uncounted":
            compare("retransmits that the witness did not count", ("uncounted", int(words[0])),
                    ("skipped", int(words[2])), ("none", 0))
        elif src != "ready":
            dst, n, segs_again, unsent = words[0], *map(int, words[1:])
            where = where_of(src)
            if not where or not {split(src)[1], split(dst)[1]} & ports:
                continue
            if n:
                seen[where][src, dst] = n, segs_again
            if unsent:
                print(f"# {src} {dst}: {unsent} retransmits were not sent")
    return seen


def compare_retransmits(where, events, seen):
    """The segments of the witness."""
    ours = {}
    for e in events:
        if e.name == "tcp_retransmit_skb":
            n, segs_again = ours.get((e.src, e.dst), (0, 0))
            ours[e.src, e.dst] = n + 1, segs_again + e.v["segs"]
    for ends in list(ours.keys() | seen.keys()):
        if ours.get(ends) != seen.get(ends):
            print(f"# {ends}: witness {seen.get(ends)}, profd {ours.get(ends)}")
    compare(f"{where}: connections with retransmits", ("witness", len(seen)),
            ("profd", len(ours)),
            ("profd, equal", sum(seen.get(k) == v for k, v in ours.items())))
    return sum(v[1] for v in seen.values())


def compare_counters(directory, where, events, seen):
    """Retransmitted segments of profd, and how many are in no event."""
    n = json.load(open(f"{directory}/{where}.nstat"))["kernel"]
    sent = sent_of(directory, where)

    def count(name):
        return sum(e.name == name for e in events)

    def both(what, counter, ours):
        compare(f"{where}: {what}", ("nstat", n[counter]), ("profd", ours))

    both("connections begun", "TcpActiveOpens", changes(events, None, "SYN_SENT"))
    both("connections accepted", "TcpPassiveOpens", count("tcp_accept"))
    both("attempts that failed", "TcpAttemptFails",
         sum(e.name == "tcp_connect" and e.failed for e in events))
    both("connections that were reset", "TcpEstabResets",
         changes(events, ("ESTABLISHED", "CLOSE_WAIT"), "CLOSE"))
    compare(f"{where}: resets sent", ("nstat", n["TcpOutRsts"]), ("tcpdump", sent.resets),
            ("profd", count("tcp_send_reset")))
    compare(f"{where}: SYNs, those sent again apart",
            ("tcpdump", sent.syns - sent.syns_again), ("profd", changes(events, None, "SYN_SENT")))
    known = compare_retransmits(where, events, seen)
    counted = n["TcpRetransSegs"] - sent.answers_again
    print(f"# {where}: segments sent again: witness {known}, tcpdump {sent.again}, nstat, "
          f"without answers to SYNs, {counted}; SYNs and answers to them: events "
          f"{segs(events, 'SYN_SENT') + sent.answers_again}, nstat {n['TcpExtTCPSynRetrans']}")
    return segs(events), max(0, counted - known)


def compare_results(directory, events, servers, port):
    theirs, ours, closed = (collections.Counter() for _ in range(3))
    resets = 0
    for line in open(f"{directory}/c.results"):
        pid, address, to, err = line.split()
        theirs[int(pid), address, int(to), int(err)] += 1
        resets += int(err) == 111 or int(to) == port + 1
    for e in events["c"]:
        key = (e.pid, *split(e.dst))
        if e.name == "tcp_connect":
            ours[(*key, -int(e.v["retval"]))] += 1
        elif e.name == "tcp_close" and e.role == "client" and e.v.get("error") != 111:
            closed[key] += 1
    wrong = (theirs - ours) + (ours - theirs)
    compare("connections with their process and result", ("programs", sum(theirs.values())),
            ("profd, equal", sum((theirs & ours).values())))
    for key in list(wrong)[:10]:
        print(f"# {key}: programs {theirs[key]}, profd {ours[key]}")
    made = collections.Counter()
    for (pid, address, to, err), n in theirs.items():
        if not err:
            made[pid, address, to] += n
    compare("connections that ended, with their process", ("programs", sum(made.values())),
            ("profd, equal", sum((made & closed).values())),
            ("profd", sum(closed[k] for k in made)))
    compare("c: resets received", ("programs", resets),
            ("profd", sum(e.name == "tcp_receive_reset" for e in events["c"])))
    pids = {k[0] for k in theirs}
    owned = bad = 0
    for where in events:
        for e in events[where]:
            if not e.pid:
                continue
            owned += 1
            bad += e.pid not in (pids if e.role == "client" else {servers[where]})
    compare("events with a wrong process", (f"of {owned}", bad), ("none", 0))
    compare("events with a process, 1000 and more", ("profd", owned >= 1000), ("yes", True))


CLOSING = ("FIN_WAIT1", "CLOSING", "LAST_ACK")


def compare_totals(directory, where, all_events, missed):
    """'missed': segments that were sent again without an event, in both namespaces."""
    events = all_events[where]
    late = collections.Counter()  # segments that were sent again after ss
    for e in all_events["c"] + all_events["s"]:
        if e.name == "tcp_retransmit_skb" and e.v["state"] in CLOSING:
            late[e.src, e.dst] += e.v["segs"]
    closes = {(e.src, e.dst): e for e in events if e.name == "tcp_close"}
    n = bad = again = 0
    for line in open(f"{directory}/{where}.ss"):
        words = line.split()
        e = closes.get((words[2], words[3]))
        v = dict(re.findall(r"(\w+):([0-9./]+)", line.split(words[3], 1)[1]))
        n += 1
        retrans = int(v.get("retrans", "0/0").split("/")[1])
        again += retrans
        rtt = float(v["rtt"].split("/")[0]) * 1000
        mine, theirs = late[words[2], words[3]], late[words[3], words[2]]
        most = 3 + mine + theirs + missed
        # The FINs, and what acknowledges them, come after ss; on a busy host they are slow,
        # and change the smoothed round trip time.
        ok = (e and 0 <= e.v["bytes_acked"] - int(v.get("bytes_acked", 0)) <= 1 and
              0 <= e.v["bytes_received"] - int(v.get("bytes_received", 0)) <= 1 and
              1 <= e.v["segs_out"] - int(v["segs_out"]) <= most and
              1 <= e.v["segs_in"] - int(v["segs_in"]) <= most and
              0 <= e.v["retransmits"] - retrans - mine <= missed and
              (rtt < 5000 or rtt * 3 / 4 < e.v["rtt"] < rtt * 5))
        bad += not ok
        if not ok:
            print(f"# {line.strip()}\n# {e and e.v}")
    compare(f"{where}: totals of connections, one differs", (f"of {n}", bad), ("none", 0))
    compare(f"{where}: there are some", ("ss", n > 0), ("yes", True))
    return again


def main():
    directory, port = sys.argv[1], int(sys.argv[2])
    servers = {a.split("=")[0]: int(a.split("=")[1]) for a in sys.argv[3:]}
    ports = {port, port + 1, port + 2}
    events = events_of(directory, ports)
    seen = witnessed(directory, ports)
    again = missed = 0
    for where in "c", "s":
        n, without = compare_counters(directory, where, events[where], seen[where])
        again += n
        missed += without
    for where in "c", "s":
        compare_totals(directory, where, events, missed)
    compare_results(directory, events, servers, port)
    compare("some segments were sent again", ("profd", again > 20), ("yes", True))
    return 1 if failed else 0


sys.exit(main())
