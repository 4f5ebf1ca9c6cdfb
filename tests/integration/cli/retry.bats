#!/usr/bin/env bats
# How often and when a job that failed runs again.

load server

setup_file() { start_server main; }
teardown_file() { stop_server main; }
setup() { use_server main; }

@test "--retry N is N runs after the first, then it is dead (R01)" {
    for n in 0 1 3; do
        "$WEIR" enqueue t -q r --id "r$n" --retry "$n" --backoff fixed:0s
    done
    "$WEIR" work -q r -- false 3>&- &
    pid=$!
    until_true sh -c '[ "$("$0" queue ls --json | jq .dead)" = 3 ]' "$WEIR"
    kill "$pid"
    wait "$pid" || true
    for n in 0 1 3; do
        [ "$(value "$("$WEIR" job show "r$n" --json)" '[.state, .attempts, .max_retry]')" = "[\"dead\",$((n + 1)),$n]" ]
    done
    exits 0 "$WEIR" job show r1
    says $'attempts\t2 of 2'
    [ "$("$WEIR" audit --json | jq -c '[.deliveries, .gap]')" = '[7,0]' ]
}

@test "a queue's retry and backoff are those of jobs that do not say it" {
    "$WEIR" queue create q --retry 1 --backoff fixed:0s
    "$WEIR" enqueue t --id quiet -q q
    "$WEIR" enqueue t --id three -q q --retry 3
    "$WEIR" enqueue t --id own -q q --backoff list:1h
    if engine_is list; then
        record=$(redis HGET "$WEIR_NAMESPACE:{q}:jobs" quiet | head -1)
    else
        record=$(redis XRANGE "$WEIR_NAMESPACE:{q}:stream" - + COUNT 1 | sed -n 3p)
    fi
    [ "$(cut -d' ' -f4- <<<"$record")" = 'keep=86400000 + retry=1 backoff=fixed:0s' ]
    exits 0 "$WEIR" enqueue t --id quiet -q q --json
    [ "$(value "$output" .existed)" = true ]
    exits 1 "$WEIR" enqueue t --id quiet -q q --retry 1
    "$WEIR" work -q q -- false 3>&- &
    pid=$!
    until_true sh -c '[ "$("$0" queue ls --json | jq -c "[.dead, .delayed]")" = "[2,1]" ]' "$WEIR"
    kill "$pid"
    wait "$pid" || true
    for job in quiet:2 three:4 own:1; do
        [ "$(value "$("$WEIR" job show "${job%:*}" --json)" .attempts)" = "${job#*:}" ]
    done
    "$WEIR" queue set q --backoff ''
    [ "$(redis HEXISTS "$WEIR_NAMESPACE:{q}:config" backoff)" = 0 ]
    exits 64 "$WEIR" queue set q --backoff soon
    exits 64 "$WEIR" enqueue t --backoff exp:2s,200%
    WEIR_MAX_RETRY=3 "$WEIR" enqueue t --id env -q q
    [ "$(value "$("$WEIR" job show env --json)" .max_retry)" = 3 ]
}
