#!/usr/bin/env bats
# weir work --coproc: processes that stay, and everything that they can do wrong.

load server

root=$BATS_TEST_DIRNAME/../../..

setup_file() { start_server main; }
teardown_file() { stop_server main; }
setup() {
    use_server main
    # The system's: wrappers that choose one take half a second.
    python=$(PATH=/usr/bin:$PATH command -v python3) || skip 'no python3'
    bad=$BATS_TEST_TMPDIR/coproc_bad.py # of this test alone: its processes are looked for
    cp "$BATS_TEST_DIRNAME/coproc_bad.py" "$bad"
    export STARTS=$BATS_TEST_TMPDIR/starts FLAG=$BATS_TEST_TMPDIR/flag SLEEP=311.$$
    : >"$STARTS"
}
teardown() {
    [ -z "${daemon:-}" ] || kill -9 "$daemon" 2>/dev/null || true
}

no_sleeper() { ! pgrep -f "^sleep $SLEEP\$"; }

put() { # ID PAYLOAD FLAGS...
    local id=$1 payload=$2
    shift 2
    "$WEIR" enqueue t "$payload" --id "$id" "$@" >/dev/null
}

# Everything that is ready, by one slot, in the order of its enqueue. $log is what is said.
drain() { # MODE FLAGS...
    local mode=${1:-}
    shift || true
    log=$BATS_TEST_TMPDIR/log
    WEIR_LOG=debug timeout 60 "$WEIR" work -q default -c 1 --drain --coproc "t=exec $python '$bad' $mode" "$@" 2>"$log" 3>&- || {
        cat "$log"
        return 1
    }
}

job() { # ID FILTER
    "$WEIR" job show "$1" --json | jq -c "$2"
}

result() { "$WEIR" job result "$1"; }
starts() { wc -l <"$STARTS"; }
said() { grep -F -- "$1" "$log"; }

# Failed once, with this reason, and is to be tried again. The job behind it is done by a
# process that was started anew.
fails_with() { # PAYLOAD REASON
    put bad "$1" --backoff fixed:1h
    put good fine
    drain
    job bad .error
    [ "$(job bad '[.state, .attempts]')" = '["delayed",1]' ]
    [[ "$(job bad .error | jq -r .)" == *"$2"* ]]
    [ "$(result good)" = fine ]
    [ "$(starts)" = 2 ]
    [ "$("$WEIR" audit --json | jq .gap)" = 0 ]
}

@test "the examples in Python, shell and Node are run by one process each" {
    for i in 1 2 3; do
        "$WEIR" enqueue shout "hello $i" --id "p$i"
        "$WEIR" enqueue words 'one two  three' --id "s$i"
    done
    "$WEIR" enqueue shout '' --id never
    node=
    if command -v node >/dev/null; then
        "$WEIR" enqueue sum '[1,2,39]' --id n
        "$WEIR" enqueue sum 'nonsense' --id nn --backoff fixed:1h
        node="--coproc=sum=node $root/examples/coproc.js"
    fi
    exits 0 "$WEIR" work -q default -c 2 --drain --coproc "shout=$python $root/examples/coproc.py" \
        --coproc "words=sh $root/examples/coproc.sh" ${node:+"$node"}
    [ "$(result p1) $(result p2) $(result p3)" = 'HELLO 1 HELLO 2 HELLO 3' ]
    [ "$(result s1)$(result s3)" = 33 ]
    [ "$(job never '[.state, .error]')" = '["dead","nothing to shout"]' ]
    [ -z "$node" ] || [ "$(result n)" = 42 ]
    [ -z "$node" ] || [[ "$(job nn .error)" == *JSON* ]]
}

@test "one process runs job after job; a process a slot at most" {
    for i in $(seq 40); do put "j$i" pid; done
    drain
    [ "$(starts)" = 1 ]
    for i in $(seq 40); do put "k$i" pid; done
    exits 0 "$WEIR" work -q default -c 3 --drain --coproc "t=exec $python '$bad'"
    [ "$(starts)" -le 4 ]
    [ "$("$WEIR" audit --json | jq -c '[.done, .gap]')" = '[80,0]' ]
}

@test "a job is told whole: id, queue, attempt, meta, payload" {
    put 'über "1"' job --meta trace=a=b --meta 'who=Ann Lee' --retry 4 --timeout 90s
    drain
    [ "$(result 'über "1"' | jq -c '[.id, .type, .queue, .attempt, .max_attempts, .delivery, .timeout_ms, .meta, .payload]')" = \
        '["über \"1\"","t","default",1,5,1,90000,{"trace":"a=b","who":"Ann Lee"},"job"]' ]
}

@test "payload and result are bytes, as base64 where they are not text" {
    printf 'a\377\000b\n' >"$BATS_TEST_TMPDIR/bytes"
    "$WEIR" enqueue shout @"$BATS_TEST_TMPDIR/bytes" --id b
    "$WEIR" enqueue shout '' --id empty
    put r bytes
    put full full
    exits 0 "$WEIR" work -q default -c 1 --drain --coproc "shout=$python $root/examples/coproc.py" \
        --coproc "t=$python $bad"
    [ "$("$WEIR" job result b | bytes)" = 41ff00420a ]
    [ "$("$WEIR" job result r | bytes)" = 00ff0a0d ]
    [ "$("$WEIR" job result full | wc -c)" = 65536 ]
}

@test "snooze, retry, permanent, with delays (R08)" {
    put s snooze
    put r retry
    put n never
    drain
    [ "$(job s '[.state, .attempts, .error]')" = '["delayed",0,"busy"]' ]
    [ "$(job r '[.state, .attempts, .error]')" = '["delayed",1,"broke"]' ]
    [ "$(job n '[.state, .error]')" = '["dead","no such thing"]' ]
    now=$(date +%s)000
    [ "$(job r .due_at)" -gt $((now + 7000000)) ]
    [ "$(job s .due_at)" -lt $((now + 3700000)) ]
    [ "$(starts)" = 1 ]
}

@test "a crash while a job runs is that job's failed attempt, with the signal" {
    fails_with segv 'killed by SIGSEGV'
    [ "$(job bad '[.runs[].signal]')" = '[11]' ]
}

@test "an exit while a job runs is its failed attempt, with the last line of stderr" {
    fails_with exit 'exit 3 without an answer: Traceback: it went wrong'
    said 'Traceback: it went wrong'
}

@test "garbage, an answer to nobody, an unknown word: failed, and another process" {
    fails_with garbage 'none of the protocol'
}

@test "an answer without its call is garbage" {
    fails_with no-call 'without its "call"'
}

@test "an answer that is no word is garbage" {
    fails_with no-word 'none of ok, retry, snooze, permanent'
}

@test "an answer to another job is not taken for this one's" {
    fails_with other-call 'answered call 6, which nobody made'
}

@test "an answer without a newline does not count" {
    fails_with no-newline 'exit 0 without an answer'
}

@test "a line without an end is cut short" {
    fails_with oversize 'a line of more than'
}

@test "one that closes its stdout is ended" {
    fails_with close 'closed its standard output'
}

@test "a hang is ended with all it started, the slot is free again (X03, X10, F36)" {
    put bad hang --timeout 1s --kill-after 1s --backoff fixed:1h
    put good fine
    drain
    [ "$(job bad '[.state, .attempts]')" = '["delayed",1]' ]
    [[ "$(job bad .error)" == *'timeout after 1.0s'* ]]
    [ "$(result good)" = fine ]
    no_sleeper
}

@test "a second answer and a late one are ignored" {
    put a twice
    put b late
    put c fine
    drain
    [ "$(result a) $(result b) $(result c)" = 'one now fine' ]
    [ "$(starts)" = 1 ]
    said 'came late and is ignored'
}

@test "an exit between two jobs costs nobody anything" {
    put a answer-and-exit --retry 0
    put b last --retry 0
    drain
    put c pid --retry 0
    drain
    [ "$(result a)" = 'last words' ]
    [ "$("$WEIR" audit --json | jq -c '[.done, .retried, .dead, .gap]')" = '[3,0,0,0]' ]
}

@test "one that says that it ends gets no other job" {
    for i in $(seq 4); do put "j$i" last --retry 0; done
    drain
    [ "$("$WEIR" audit --json | jq -c '[.done, .dead]')" = '[4,0]' ]
    [ "$(starts)" = 4 ]
}

@test "what is printed on stdout and stderr is logged, and harms nothing" {
    put a noise
    drain banner
    [ "$(result a)" = ok ]
    said 't prints: Welcome to the framework 3.0'
    said 't prints: and print'
    said 't says: warning: on stderr'
    "$WEIR" job logs a | grep -F 'warning: on stderr'
    "$WEIR" job logs a | grep -F 'and print'
}

@test "a flood on both is cut, and the job ends well (F39)" {
    put a flood
    drain
    [ "$(result a)" = ok ]
    said 'the rest is left out'
    [ "$(wc -c <"$log")" -lt 400000 ]
}

@test "a result that is too long fails" {
    put a big --backoff fixed:1h
    drain
    [[ "$(job a .error)" == *'a result of 70000 bytes, 65536 are allowed'* ]]
}

@test "one that cannot start costs nobody an attempt (R10)" {
    put a fine --retry 0
    drain no-start
    [ "$(job a '[.state, .attempts]')" = '["delayed",0]' ]
    [[ "$(job a .error)" == *"No module named 'shoes'"* ]]
    "$WEIR" job run a >/dev/null
    exits 0 "$WEIR" work -q default -c 1 --drain --coproc 't=exec /no/such/program'
    [[ "$(job a .error)" == *'/no/such/program'* ]]
    "$WEIR" job run a >/dev/null
    drain version
    [[ "$(job a .error)" == *'speaks version 9 of weir-coproc, this worker 1'* ]]
    "$WEIR" job run a >/dev/null
    drain early
    [[ "$(job a .error)" == *'answered before it said hello'* ]]
    [ "$(job a .attempts)" = 0 ]
}

@test "a start that failed once is tried again, a little later" {
    put a fine --retry 0
    "$WEIR" work -q default -c 1 --coproc "t=exec $python '$bad' no-start-once" 2>/dev/null 3>&- &
    daemon=$!
    exits 0 "$WEIR" job wait a --timeout 20s
    [ "$(starts)" = 2 ]
    kill -TERM "$daemon"
    wait "$daemon"
}

running() { [ "$(job "$1" .state)" = '"processing"' ] && [ "$(starts)" -ge "${2:-1}" ]; }
has_progress() { [[ "$(job "$1" .progress)" == *'33 a third'* ]]; }

@test "progress is seen while it runs; a running job can be cancelled (X01)" {
    put a progress
    put b hang --kill-after 200ms
    "$WEIR" work -q default -c 2 --coproc "t=exec $python '$bad'" 2>"$BATS_TEST_TMPDIR/log" 3>&- &
    daemon=$!
    until_true has_progress a
    until_true running b
    "$WEIR" job cancel b
    cancelled() { [ "$("$WEIR" audit --json | jq .cancelled)" = 1 ]; }
    until_true cancelled
    no_sleeper
    touch "$FLAG"
    exits 0 "$WEIR" job wait a --timeout 10s
    "$WEIR" job logs a | grep -F 'a line for the log'
    kill -TERM "$daemon"
    wait "$daemon"
    daemon=
    until_true no_process_of_ours
}

no_process_of_ours() { ! pgrep -f "$bad"; }

@test "a stop lets the running job finish, then closes the processes (S01)" {
    put a wait
    "$WEIR" work -q default -c 1 --coproc "t=exec $python '$bad'" 2>/dev/null 3>&- &
    daemon=$!
    until_true running a
    kill -TERM "$daemon"
    touch "$FLAG"
    wait "$daemon"
    daemon=
    [ "$(result a)" = waited ]
    no_process_of_ours
}

@test "a job that outlives the grace time goes back uncharged (S02)" {
    put a hang --retry 0
    "$WEIR" work -q default -c 1 --grace 200ms --coproc "t=exec $python '$bad'" 2>/dev/null 3>&- &
    daemon=$!
    until_true running a
    kill -TERM "$daemon"
    wait "$daemon"
    daemon=
    [ "$(job a '[.state, .attempts]')" = '["ready",0]' ]
    no_process_of_ours
    no_sleeper
}

@test "a worker killed takes its processes with it, and the jobs come back (F1)" {
    put a hang
    "$WEIR" work -q default -c 1 --lease 2s --coproc "t=exec $python '$bad'" 2>/dev/null 3>&- &
    daemon=$!
    until_true running a
    kill -9 "$daemon"
    daemon=
    until_true no_process_of_ours
    until_true no_sleeper
}

@test "a section of weir.conf makes a co-process, with its bounds" {
    cat >"$BATS_TEST_TMPDIR/weir.conf" <<CONF
[handler.t]
command = $python $bad
coproc = yes
timeout = 1s
kill_after = 200ms
env = STARTS=$STARTS SLEEP=$SLEEP
CONF
    put bad hang --backoff fixed:1h
    put good fine
    WEIR_CONFIG=$BATS_TEST_TMPDIR/weir.conf exits 0 "$WEIR" work -q default -c 1 --drain
    [[ "$(job bad .error)" == *'timeout after 1.0s'* ]]
    [ "$(result good)" = fine ]
    [ "$(starts)" = 2 ]
}

@test "mistakes on the command line" {
    exits 64 "$WEIR" work --coproc nonsense
    says '--coproc nonsense: not TYPE=CMD'
    exits 64 "$WEIR" work --coproc 't=cat' --exec 't=cat'
    says 'type t has a handler already'
}
