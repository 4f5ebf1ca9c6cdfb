#!/usr/bin/env bats
# Dead letters in bulk: limits, pace, interrupt and resume.

load server

setup_file() { start_server main; }
teardown_file() { stop_server main; }
setup() { use_server main; }

dead() {
    "$WEIR" queue ls --json | jq -s "map(select(.queue == \"$1\"))[0].$2"
}

@test "limits of dead jobs are set, 0 is none, and what is wrong is refused (R03)" {
    "$WEIR" queue create q --dead-max-count 10 --dead-max-age 30d --dead-max-bytes 64M
    [ "$(redis HMGET "$WEIR_NAMESPACE:{q}:config" dead_max dead_age_max dead_bytes_max | tr '\n' ' ')" = '10 2592000000 67108864 ' ]
    exits 0 "$WEIR" queue set q --dead-max-count 0
    [ "$output" = $'q\tset' ]
    [ "$(redis HMGET "$WEIR_NAMESPACE:{q}:config" dead_max dead_age_max | tr '\n' ' ')" = '0 2592000000 ' ]
    exits 1 "$WEIR" queue set nobody --dead-max-count 5
    says E_NO_QUEUE
    exits 64 "$WEIR" queue set q --dead-max-count -1
    exits 64 "$WEIR" queue set q --dead-max-age soon
}

@test "the scheduler trims dead jobs over the limit and says so (R03)" {
    for i in 1 2 3 4 5; do make_dead trim >/dev/null; done
    "$WEIR" queue set trim --dead-max-count 2
    "$WEIR" scheduler -q trim 2>"$BATS_TEST_TMPDIR/log" 3>&- &
    pid=$!
    until_true sh -c '[ "$("$0" queue ls --json | jq .dead)" = 2 ]' "$WEIR"
    kill "$pid"
    wait "$pid" || true
    grep -q 'trimmed 3 dead jobs' "$BATS_TEST_TMPDIR/log"
    exits 0 "$WEIR" audit --deep --json
    [ "$(value "$output" '[.dead, .purged, .trimmed, .gap]')" = '[2,3,3,0]' ]
}

@test "a replay of all keeps its pace, can be interrupted, and goes on, each job once (R04)" {
    seq 30 | sed 's/.*/{"type":"t"}/' | "$WEIR" enqueue --from - -q r >/dev/null
    "$WEIR" work -q r --drain -- sh -c 'exit 65' 3>&-
    [ "$(dead r dead)" = 30 ]
    exits 64 "$WEIR" dead retry --all -q r --yes --rate fast
    exits 64 "$WEIR" dead retry --rate 5/s x
    "$WEIR" dead retry --all -q r --yes --rate 3/s 2>"$BATS_TEST_TMPDIR/log" 3>&- &
    pid=$!
    until_true sh -c '[ "$("$0" queue ls --json | jq .ready)" -ge 3 ]' "$WEIR"
    kill -INT "$pid"
    wait "$pid" && false || [ $? -eq 130 ]
    grep -q 'Interrupted: .* of 30 jobs retried' "$BATS_TEST_TMPDIR/log"
    some=$("$WEIR" audit --json | jq .replayed)
    ((some >= 3 && some < 30))
    # Those that die again in between are not replayed a second time.
    "$WEIR" work -q r --drain -- sh -c 'exit 65' 3>&-
    before=$(sed -n 's/.*--before //p' "$BATS_TEST_TMPDIR/log")
    exits 0 "$WEIR" dead retry --all -q r --yes --before "$before"
    [ "$output" = $((30 - some)) ]
    [ "$("$WEIR" audit --json | jq -c '[.replayed, .gap]')" = '[30,0]' ]
}
