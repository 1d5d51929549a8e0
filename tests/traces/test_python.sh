#!/bin/bash
# A Python program with ddtrace, which writes OpenTelemetry's contexts: nested spans, threads
# that come and go, a child of fork.
. "$(dirname "$0")/lib.sh"

needs python3
# Its code is of this version of Python.
dir=python-$(python3 -c 'import sys; print(sys.implementation.cache_tag)')
get "$dir" python3 -m pip install --quiet --disable-pip-version-check --no-input \
	--only-binary :all: --target "$ROOM/$dir" ddtrace==4.16.0

# Nothing listens for what it sends.
export PYTHONPATH=$ROOM/$dir DD_SERVICE=python DD_TRACE_STARTUP_LOGS=false \
	DD_TRACE_AGENT_URL=http://127.0.0.1:9 DD_INSTRUMENTATION_TELEMETRY_ENABLED=false \
	DD_REMOTE_CONFIGURATION_ENABLED=false
start_traces python 997
python3 "$TRACES/spans.py" 3 10 "$T/python.ids" >"$T/python.err" 2>&1
is "it ends well" $? 0 || diag "$(cat "$T/python.err")"
stop_profd
is "profd ends well" $? 0
compared python "$T/python.ids" "$T/python.ids.child"
like "its service is that of its context" \
	"$("$PROFD" report --archive "$archive" --last 10m --by service --rows service)" \
	'python'
plan
