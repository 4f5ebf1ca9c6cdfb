#!/usr/bin/env bats
# weir bench: what it tells, and that it leaves nothing behind however it ends.

load server

setup_file() { start_server main; }
teardown_file() { stop_server main; }
setup() {
    use_server main
    export ENGINE=${WEIR_ENGINE:-list}
    "$WEIR" queue create other --engine "$ENGINE" # which is nobody's but ours
}
teardown() {
    ! kill -KILL "$bench" 2>/dev/null || echo 'bench still ran'
    ! kill -KILL "$talking" 2>/dev/null || echo 'the other bench still ran'
    ! kill -KILL "$server" 2>/dev/null || echo 'its server still ran'
}

# In the background, with SIGINT as on a terminal; $bench is its process.
begin() {
    env --default-signal=INT "$WEIR" bench --engine "$ENGINE" "$@" >out 2>err 3>&- &
    bench=$!
}

# The processes that it started, and those that they started.
offspring() {
    local all
    all=$(pgrep -P "$bench" | tr '\n' ,)
    [ -z "$all" ] || { pgrep -P "$bench"; pgrep -P "${all%,}"; } || true
}

has_begun() {
    [ -n "$(offspring)" ]
}

# A worker, its two children, and the other side of the bare loop.
is_measuring() {
    [ "$(offspring | wc -l)" -ge 4 ]
}

bench_keys() {
    redis-cli -s "$1" --scan --pattern 'weir-bench-*'
}

@test "bench measures all parts, each beside its bare loop, and leaves no key" {
    "$WEIR" bench --engine "$ENGINE" --jobs 60 >out 2>err
    [ ! -s err ]
    [ "$(jq -c '[.engine, .jobs, .gap]' out)" = "[\"$ENGINE\",60,0]" ]
    jq -e '[.enqueue_per_s, .enqueue_bulk_per_s, .process_per_s, .start_latency_us.p50,
            .hop_and_ping_us.p50, .call_us.p50, .two_hops_us.p50, .lateness_ms.min] |
           all(. > 0)' out
    jq -e '[(.start_latency_us.p50 / .hop_and_ping_us.p50) / .start_per_hop_and_ping,
            (.call_us.p50 / .two_hops_us.p50) / .call_per_two_hops] |
           all(. > 0.999 and . < 1.001)' out
    [ -z "$(bench_keys "$(server_socket main)")" ]
    [ "$("$WEIR" queue ls --json | jq -r .queue)" = other ]
}

@test "a bare loop logs in as weir does: by TCP, as a user, in another database" {
    port=$(python3 -c 'import socket
s = socket.socket()
s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])')
    start_server tcp --port "$port"
    redis-cli -s "$(server_socket tcp)" ACL SETUSER ann on '>open sesame' '~*' '&*' +@all
    redis-cli -s "$(server_socket tcp)" CONFIG SET requirepass secret
    WEIR_URL="redis://ann:open%20sesame@127.0.0.1:$port/3" "$WEIR" bench --jobs 5 --only latency >out
    jq -e '.hop_and_ping_us.min > 0' out
    WEIR_URL="redis://127.0.0.1:$port/3" REDISCLI_AUTH=secret "$WEIR" bench --jobs 5 --only call >out
    jq -e '.two_hops_us.min > 0' out
    redis-cli -s "$(server_socket tcp)" -a secret ACL SETUSER ann -scan
    WEIR_URL="redis://ann:open%20sesame@127.0.0.1:$port/3" exits 0 "$WEIR" bench --jobs 5 --only latency
    says 'Keys that begin with weir-bench-'
    export REDISCLI_AUTH=secret
    redis-cli -s "$(server_socket tcp)" -n 3 FLUSHDB
    [ "$(redis-cli -s "$(server_socket tcp)" INFO keyspace | grep -c ^db)" = 0 ]
    WEIR_URL="redis://127.0.0.1:$port" exits 77 env -u REDISCLI_AUTH "$WEIR" bench --jobs 5
    stop_server tcp
}

@test "bench that is interrupted ends its processes and deletes its keys" {
    for part in latency call lateness; do
        begin --only $part
        until_true has_begun
        [ $part = lateness ] || until_true is_measuring
        started=$(offspring)
        [ -n "$(bench_keys "$(server_socket main)")" ]
        kill -INT "$bench"
        wait "$bench" && false || [ $? -eq 130 ]
        [ "$(cat err)" = 'Interrupted; the keys of this run are deleted.' ]
        [ ! -s out ]
        for pid in $started; do [ ! -e "/proc/$pid" ]; done
        [ -z "$(bench_keys "$(server_socket main)")" ]
    done
    [ "$("$WEIR" queue ls --json | jq -r .queue)" = other ]
}

@test "bench whose Redis goes away says so in one line, and ends its processes" {
    start_server gone
    server=$(cat "$BATS_FILE_TMPDIR/gone.pid")
    export WEIR_URL
    WEIR_URL=unix://$(server_socket gone)
    begin --only latency --command-timeout 1s # talks all the time
    until_true is_measuring
    started=$(offspring)
    talking=$bench
    mv err err.talking
    begin --only lateness --command-timeout 1s # only waits
    until_true has_begun
    started="$started $(offspring)"
    kill -KILL "$server"
    for pid in "$talking" "$bench"; do
        wait "$pid" && false || [ $? -eq 69 ]
    done
    for said in err.talking err; do
        [ "$(grep -vc '^ ' $said)" = 1 ]
        grep -q '^weir: .*keys that begin with weir-bench-[0-9a-f-]*: may be left  \[E_CONNECT\]$' $said
    done
    [ ! -s out ]
    for pid in $started; do [ ! -e "/proc/$pid" ]; done
}

@test "bench whose worker dies says so" {
    begin --only latency
    until_true is_measuring
    for pid in $(pgrep -P "$bench"); do
        ! pgrep -P "$pid" || kill -KILL "$pid" # it has children: the worker
    done
    wait "$bench" && false || [ $? -eq 70 ]
    grep -q 'the worker was killed by signal 9' err
    [ -z "$(bench_keys "$(server_socket main)")" ]
}
