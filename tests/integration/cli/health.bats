#!/usr/bin/env bats
# What the tool says of a server that is set up wrong or stands still.

load server

setup_file() { start_server main; }
teardown_file() { stop_server main; }
setup() { use_server main; }

teardown() {
    [ -z "${daemon:-}" ] || kill -9 "$daemon" 2>/dev/null || true
    kill -CONT "$(server_pid)" 2>/dev/null || true
    redis CONFIG SET maxmemory-policy noeviction >/dev/null
}

server_pid() {
    cat "$BATS_FILE_TMPDIR/main.pid"
}

is_state() {
    [ "$("$WEIR" job show "$1" --json | jq -r .state)" = "$2" ]
}

@test "work, scheduler and dev say at their start that Redis would throw jobs away (N08)" {
    redis CONFIG SET maxmemory-policy allkeys-lru
    for command in 'work -q x -- true' scheduler 'dev -- true'; do
        # shellcheck disable=SC2086
        "$WEIR" $command 3>&- 2>"$BATS_TEST_TMPDIR/said" &
        daemon=$!
        until_true grep -q 'DANGER.*allkeys-lru.*CONFIG SET maxmemory-policy noeviction' "$BATS_TEST_TMPDIR/said"
        kill -TERM "$daemon"
        wait "$daemon"
    done
    redis CONFIG SET maxmemory-policy noeviction
    "$WEIR" work -q x --drain -- true 2>"$BATS_TEST_TMPDIR/said"
    ! grep -q DANGER "$BATS_TEST_TMPDIR/said"
}

@test "a body that was deleted by hand is marked lost and the worker goes on (N08)" {
    engine_is list || skip 'a stream entry that was deleted before it ran leaves no trace but the sum'
    "$WEIR" enqueue t --id victim
    "$WEIR" enqueue t --id next
    redis HDEL "$WEIR_NAMESPACE:{default}:jobs" victim
    "$WEIR" work -q default --drain -- true 3>&-
    is_state next done
    [ "$("$WEIR" dead ls --json | jq -rs 'map(.id) | join(" ")')" = victim ]
    [[ "$("$WEIR" dead show victim)" == *lost_body* ]]
    exits 0 "$WEIR" audit --deep
}

@test "with Redis standing still enqueue fails within its deadline and keeps nothing (N11)" {
    "$WEIR" enqueue t --id before
    kill -STOP "$(server_pid)"
    start=$SECONDS
    run timeout 30 "$WEIR" enqueue t --id hidden
    [ $((SECONDS - start)) -le 7 ]
    [ "$status" = 69 ] || [ "$status" = 76 ]
    says Redis
    kill -CONT "$(server_pid)"
    until_true "$WEIR" status --quiet
    exits 1 "$WEIR" job show hidden
    is_state before ready
}

@test "--check alone asks whether jobs are done here (N18)" {
    exits 0 "$WEIR" status --check
    "$WEIR" enqueue t --id j
    exits 1 "$WEIR" status --check --json
    says 'no worker serves it'
    "$WEIR" work -q default -- true 3>&- 2>/dev/null &
    daemon=$!
    until_true is_state j done
    until_true "$WEIR" status --check --quiet
    exits 0 "$WEIR" status --quiet --check
    exits 0 "$WEIR" status --check 'ready<1'
    exits 0 "$WEIR" status --check='ready<1'
    exits 64 "$WEIR" status --check nonsense
    exits 69 "$WEIR" status --check --url unix:///no/such/socket
    # A worker that does not claim serves nobody.
    "$WEIR" worker quiet --all
    "$WEIR" enqueue t
    until_true sh -c '! "$0" status --check --quiet 2>/dev/null' "$WEIR"
}
