#!/bin/bash
# A Java program with Elastic's APM agent: its native library has the ids, and receives the
# stacks, which its transactions list as they arrive at a server.
. "$(dirname "$0")/lib.sh"

needs java javac mvn python3
version=1.55.1
api=1.38.0
repository=$ROOM/java
agent=$repository/co/elastic/apm/elastic-apm-agent/$version/elastic-apm-agent-$version.jar
otel=$repository/io/opentelemetry
classes=$T/classes:$otel/opentelemetry-api/$api/opentelemetry-api-$api.jar
classes+=:$otel/opentelemetry-context/$api/opentelemetry-context-$api.jar
jars() {
	local get=(mvn --quiet --batch-mode "-Dmaven.repo.local=$repository" dependency:get)
	"${get[@]}" -Dtransitive=false "-Dartifact=co.elastic.apm:elastic-apm-agent:$version" &&
		"${get[@]}" "-Dartifact=io.opentelemetry:opentelemetry-api:$api"
}
get java jars
check "the program is compiled" javac -d "$T/classes" -cp "$classes" "$TRACES/Spans.java" ||
	{ plan; exit 1; }

# It would tell the agent, too.
alone() { ! pgrep -f 'profd run '; }
check "no other profd runs" wait_for 60 alone
intake=$(free_port)
background python3 "$TRACES/intake.py" "$intake" "$T/transactions"
wait_for 60 curl -sf "http://127.0.0.1:$intake/" || bail "the server for the agent starts"

# An agent reads ten messages in 20 ms: 500 a second.
start_traces java 199
offset=$(python3 -c 'import time
print(time.clock_gettime_ns(time.CLOCK_BOOTTIME) - time.clock_gettime_ns(time.CLOCK_MONOTONIC))')
# Its socket and its library are below the temporary directory.
background java "-javaagent:$agent" "-Djava.io.tmpdir=$T" -Delastic.apm.service_name=java \
	"-Delastic.apm.server_url=http://127.0.0.1:$intake" -Delastic.apm.api_request_time=1s \
	-Delastic.apm.universal_profiling_integration_enabled=true \
	-Delastic.apm.log_level=INFO -Delastic.apm.central_config=false \
	-cp "$classes" Spans 24 "$T/java.ids" "$T/go" "$offset" >"$T/java.out" 2>&1
java=$pid
listens() { (($(metric profd_pm_apm_agents) == 1)); }
check "the agent is registered" wait_for 60 listens || diag "$(tail "$T/java.out")"
# Samples from before may still come.
sleep 6
touch "$T/go"
check "it ends well" wait_for 600 test -e "$T/java.ids" || diag "$(tail "$T/java.out")"

# The agent keeps each for 4.5 s.
arrived() {
	local missing
	missing=$(awk '$4 != "-" { print $4 }' "$T/java.ids" | sort -u |
		grep -v -c -F -f <(awk '{ print $2 }' "$T/transactions"))
	((missing == 0))
}
check "the server has all transactions" wait_for 60 arrived
sent=$(metric profd_pm_apm_samples_total)
lost=$(($(metric profd_pm_apm_lost_full_total) + $(metric profd_pm_apm_lost_late_total) +
	$(metric profd_pm_apm_lost_gone_total)))
diag "$sent samples sent, $lost lost"
end_group "$java"
stop_profd
is "profd ends well" $? 0
compared java "$T/java.ids"
is "none was lost" "$lost" 0

# Of each transaction the trace and the number of stacks.
awk '$1 == "request" { print $2, $3 }' "$T/transactions" >"$T/stacks"
python3 "$TRACES/stacks.py" "$archive" "$T/stacks" >"$T/java.stacks" 2>&1
is "each transaction lists as many stacks as it has samples" $? 0
diag "$(cat "$T/java.stacks")"
like "its service is that of its storage" \
	"$("$PROFD" report --archive "$archive" --last 10m --by service --rows service)" 'java'
plan
