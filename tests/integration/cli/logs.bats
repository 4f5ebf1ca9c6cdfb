#!/usr/bin/env bats
# weir job logs: what jobs print, while they run and after.

load server

setup_file() { start_server main; }
teardown_file() { stop_server main; }
setup() { use_server main; }

teardown() {
    [ -z "${daemon:-}" ] || kill -TERM "$daemon" 2>/dev/null || true
    [ -z "${follower:-}" ] || kill -9 "$follower" 2>/dev/null || true
    wait 2>/dev/null || true
}

work() {
    "$WEIR" work -q default "$@" 3>&- 4>&- &
    daemon=$!
}

has_printed() {
    [[ $("$WEIR" job logs "$1") == *$2* ]]
}

not_there() {
    ! "$WEIR" job show "$1" >/dev/null 2>&1
}

# what_runs ID SCRIPT: enqueues a job and runs it to its end.
what_runs() {
    "$WEIR" enqueue t --id "$1" --retry 0 >"$BATS_TEST_TMPDIR/id"
    "$WEIR" work -q default --once -- sh -c "$2" 3>&-
}

@test "each line is there within a second, on any host, and -f ends with the job (X09)" {
    local out=$BATS_TEST_TMPDIR/out seen printed late=0 lines=0
    "$WEIR" enqueue t --id a
    work -- sh -c 'for i in 1 2 3 4; do date +%s%N >&2; sleep 0.5; done'
    "$WEIR" job logs -f --raw a 3>&- | while read -r printed; do
        echo "$printed $(date +%s%N)"
    done >"$out"
    while read -r printed seen; do
        lines=$((lines + 1))
        [ $((seen - printed)) -lt 1000000000 ] || late=$((late + 1))
    done <"$out"
    [ "$lines" -eq 4 ]
    [ "$late" -eq 0 ]
    exits 0 "$WEIR" job logs -f a # once more, after its end
    [ "$(wc -l <<<"$output")" -eq 4 ]
    [[ $output =~ ^20[0-9-]+T[0-9:.]+Z$'\t'[0-9]+ ]]
}

@test "a follower goes on with the retries, and its status says that the job died" {
    "$WEIR" enqueue t --id a --retry 1 --backoff fixed:1s
    work -- sh -c 'echo "run $WEIR_ATTEMPT" >&2; exit 3'
    exits 1 "$WEIR" job logs -f a
    [[ $output == *"run 1"*"run 2"*E_JOB_FAILED* ]]
    [[ $("$WEIR" job logs a) == *"run 2" ]]
    [[ $("$WEIR" job logs --attempt 1 a) == *"run 1" ]]
    exits 1 "$WEIR" job logs --attempt 3 a
    [[ $output == *"nothing is kept of run 3"*E_WRONG_STATE* ]]
    exits 64 "$WEIR" job logs --attempt 0 a
}

@test "colours, bars and binary survive with --raw and are harmless without (X09, D03)" {
    local bytes=$BATS_TEST_TMPDIR/bytes
    {
        printf '\033[31mred\033[0m\ttab\n10%%\r20%%\r100%%\n\007\033]0;title\007no end'
        for i in $(seq 0 255); do printf "\\x$(printf %02x "$i")"; done
        head -c 9000 /dev/urandom
    } >"$bytes"
    what_runs a "cat '$bytes' >&2"
    "$WEIR" job logs --raw a | cmp - "$bytes"
    "$WEIR" job logs a >"$BATS_TEST_TMPDIR/shown"
    grep -q 'x1b\[31mred.x1b\[0m'$'\t''tab$' "$BATS_TEST_TMPDIR/shown"
    [ "$(tr -d '[:print:][:space:]' <"$BATS_TEST_TMPDIR/shown" | LC_ALL=C tr -d '\200-\377' | wc -c)" -eq 0 ]
    "$WEIR" job logs --json a | jq -se 'map(has("text") or has("text_base64")) | all'
}

@test "the begin and the end of a flood are kept, and what is missing is counted" {
    what_runs a 'seq 1 1000000 >&2'
    "$WEIR" job logs a >"$BATS_TEST_TMPDIR/shown"
    [ "$(cut -f2 "$BATS_TEST_TMPDIR/shown" | sed -n '1p;500p;$p' | xargs)" = '1 500 1000000' ]
    [ "$(redis hget "$WEIR_NAMESPACE:{default}:stats" log_bytes)" -lt 90000 ]
    "$WEIR" job logs --json a | jq -se '
        (map(.text // "" | length) | add) + (map(.left_out_bytes // 0) | add) == 6888896'
    [ "$("$WEIR" job logs a --tail 2 | cut -f2 | xargs)" = '999999 1000000' ]
}

@test "output goes with its job, and the deep audit says so" {
    what_runs a 'echo why >&2; exit 65'
    [ "$(redis hlen "$WEIR_NAMESPACE:{default}:log")" -eq 3 ]
    exits 0 "$WEIR" audit --deep
    "$WEIR" dead purge a -y
    [ "$(redis exists "$WEIR_NAMESPACE:{default}:log")" -eq 0 ]
    exits 1 "$WEIR" job logs a
    [[ $output == *E_NO_JOB* ]]
}

@test "a job that printed nothing says so, on stderr" {
    what_runs a 'echo result'
    exits 0 "$WEIR" job logs a
    [[ $output == *"printed nothing"* ]]
    [ -z "$("$WEIR" job logs a 2>/dev/null)" ]
}

@test "while Redis stands still jobs run on, at their speed (N01)" {
    local pid began
    pid=$(cat "$BATS_FILE_TMPDIR/main.pid")
    "$WEIR" enqueue t --id a
    work -- sh -c 'i=0; while [ $i -lt 20 ]; do echo "line $i" >&2; sleep 0.05; i=$((i+1)); done
        seq 1 300000 >&2; date +%s%N >"$0"' "$BATS_TEST_TMPDIR/end"
    until_true has_printed a line
    began=$(date +%s%N)
    kill -STOP "$pid"
    until_true [ -s "$BATS_TEST_TMPDIR/end" ]
    kill -CONT "$pid"
    [ $(($(cat "$BATS_TEST_TMPDIR/end") - began)) -lt 4000000000 ]
    exits 0 "$WEIR" job wait a
    [[ $("$WEIR" job logs a) == *300000 ]]
}

@test "job show has the last runs: how each ended, how long it took, what it used" {
    "$WEIR" enqueue t some --id a --retry 2 --backoff fixed:1s
    work -- sh -c 'case $WEIR_DELIVERY in
        1) echo "no space" >&2; exit 3 ;; 2) kill -9 $$ ;; *) cat ;; esac'
    exits 0 "$WEIR" job wait a
    "$WEIR" job show --json a | jq -e '
        (.runs | map([.run, .outcome, .exit_code, .signal])) ==
            [[1, "failed", 3, null], [2, "failed", null, 9], [3, "done", 0, null]] and
        (.runs | map(.wall_ms >= 0 and .max_rss_kib > 0 and (.worker | length) > 10) | all) and
        .runs[0].error == "exit 3: no space" and .runs[0].bytes_err == 9 and
        .runs[2].bytes_in == 4 and .runs[2].bytes_out == 4 and .error != null'
    exits 0 "$WEIR" job show a
    [ "$(grep -c '^run' <<<"$output")" -eq 3 ]
    [[ $output == *"failed"*"exit 3: no space"*"SIGKILL"*"done  exit 0"* ]]
    [ "$(redis hlen "$WEIR_NAMESPACE:{default}:errors")" -eq 1 ]
    "$WEIR" enqueue t some --id b --keep-result 0
    until_true not_there b
    [ "$(redis hlen "$WEIR_NAMESPACE:{default}:errors")" -eq 1 ]
}
