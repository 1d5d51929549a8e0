#!/usr/bin/env python3
"""intake.py PORT FILE: a server as Elastic's APM agents send to. Each transaction becomes a
line of FILE: its name, its trace, and the number of the profiler's stacks that it lists."""
import http.server
import json
import sys
import zlib

STACKS = "elastic.profiler_stack_trace_ids"


class Intake(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, status, body=b""):
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def body(self):
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        data = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            data += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return data

    def do_GET(self):
        self.answer(200, b'{"version":"8.15.0"}')

    def do_POST(self):
        data = self.body()
        if self.headers.get("Content-Encoding") in ("deflate", "gzip"):
            # Of either form; the agent may end it without its last block.
            data = zlib.decompressobj(32 + zlib.MAX_WBITS).decompress(data)
        if self.path.startswith("/intake/"):
            for line in data.splitlines():
                self.event(json.loads(line))
            self.answer(202)
        else:
            self.answer(200, b"{}")

    def event(self, event):
        transaction = event.get("transaction")
        if not transaction:
            return
        stacks = transaction.get("otel", {}).get("attributes", {}).get(STACKS, [])
        print(transaction["name"], transaction["trace_id"], len(stacks), file=out, flush=True)

    def log_message(self, *args):
        pass


out = open(sys.argv[2], "w")
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Intake).serve_forever()
