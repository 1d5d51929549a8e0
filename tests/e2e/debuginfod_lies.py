#!/usr/bin/env python3
"""A debuginfod server that misbehaves, on a loopback port that it prints.

debuginfod_lies.py OTHER REAL: the first part of the path selects how. OTHER is an
ELF file with another build id, REAL the URL of a server that has the files.
"""
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

OTHER, REAL = sys.argv[1:3]


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *args):
        pass

    def body(self, data):
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def redirect(self, where):
        self.send_response(302)
        self.send_header("Location", where)
        self.end_headers()

    def do_other(self, rest):
        with open(OTHER, "rb") as f:
            self.body(f.read())

    def do_garbage(self, rest):
        self.body(b"\x7fELF" + b"\xff" * 5000)

    def do_empty(self, rest):
        self.body(b"")

    def do_error(self, rest):
        self.send_error(500)

    def do_missing(self, rest):
        self.send_error(404)

    def do_endless(self, rest):
        self.send_response(200)
        self.end_headers()
        while True:
            self.wfile.write(b"\0" * 65536)

    def do_huge(self, rest):
        self.send_response(200)
        self.send_header("Content-Length", str(1 << 62))
        self.end_headers()
        self.wfile.write(b"\0" * 65536)

    def do_short(self, rest):
        self.send_response(200)
        self.send_header("Content-Length", "100000")
        self.end_headers()
        self.wfile.write(b"\0" * 100)

    def do_slow(self, rest):
        self.send_response(200)
        self.end_headers()
        while True:
            self.wfile.write(b"\x7f")
            time.sleep(0.2)

    def do_loop(self, rest):
        self.redirect(self.path)

    def do_file(self, rest):
        self.redirect("file:///etc/passwd")

    def do_moved(self, rest):
        self.redirect(REAL + "/" + rest)

    def do_GET(self):
        how, rest = self.path.lstrip("/").split("/", 1)
        try:
            getattr(self, "do_" + how)(rest)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
