#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cost COMMAND...: runs it; prints its wall time and CPU time in seconds and its peak
of resident memory in MiB. Its own output goes to standard error.
"""
import resource
import subprocess
import sys
import time

begin = time.monotonic()
status = subprocess.run(sys.argv[1:], stdout=sys.stderr).returncode
wall = time.monotonic() - begin
use = resource.getrusage(resource.RUSAGE_CHILDREN)
print(f"{wall:.3f} {use.ru_utime + use.ru_stime:.3f} {use.ru_maxrss / 1024:.1f}")
sys.exit(status)
