#!/bin/bash
# A Rust program with crates that write OpenTelemetry's contexts: records that are swapped
# and records that are written again, threads that come and go, children.
. "$(dirname "$0")/lib.sh"

needs cargo
build_rust() {
	# Else the variable is not in .dynsym.
	RUSTFLAGS='-C link-arg=-Wl,--export-dynamic-symbol=otel_thread_ctx_v1' \
		CARGO_TARGET_DIR=$ROOM/rust cargo build --quiet --release \
		--manifest-path "$ROOM/rust.src/Cargo.toml"
}
# Not where cargo would leave its lock file among the sources.
mkdir -p "$ROOM/rust.src"
cp -u "$TRACES/rust/"* "$ROOM/rust.src/"
check "the program is compiled, with crates of the registry" build_rust ||
	{ plan; exit 1; }

start_traces rust 997
"$ROOM/rust/release/spans" 3 10 "$T/rust.ids" 2>"$T/rust.err"
is "it ends well" $? 0 || diag "$(cat "$T/rust.err")"
stop_profd
is "profd ends well" $? 0
compared rust "$T/rust.ids" "$T/rust.ids.child"
services=$("$PROFD" report --archive "$archive" --last 10m --by service --rows service)
like "its service is that of its context" "$services" ' rust($|[^-])'
like "so is that of a child with a context of its own" "$services" 'rust-child'
plan
