#!/usr/bin/env bats
# When jobs start: --in, --at, job edit, job run, overdue and upcoming jobs.

load server

setup_file() { start_server main; }
teardown_file() { stop_server main; }
setup() { use_server main; }

@test "a negative delay is refused; zero and a time that is over start at once, in turn (T02)" {
    for bad in --in=-5 --in=-1ms --at=-1; do
        exits 64 "$WEIR" enqueue t "$bad"
    done
    "$WEIR" enqueue t --id a
    "$WEIR" enqueue t --id b --in 0
    "$WEIR" enqueue t --id c --at 1970-01-01T00:00:00Z
    "$WEIR" enqueue t --id d
    [ "$("$WEIR" job ls -s ready -o id | tr '\n' ' ')" = 'a b c d ' ]
}

@test "any delay up to the year 9999 is kept to the ms, what is beyond it is refused (T03)" {
    before=$(date +%s%3N)
    "$WEIR" enqueue t --id month --in 30d
    "$WEIR" enqueue t --id int --in 2147483648s
    "$WEIR" enqueue t --id century --in 36500d
    "$WEIR" enqueue t --id last --at 9999-12-31T23:59:59.999Z
    after=$(date +%s%3N)
    for job in month:2592000000 int:2147483648000 century:3153600000000; do
        due=$(value "$("$WEIR" job show "${job%:*}" --json)" .due_at)
        ((due >= before + ${job#*:} && due <= after + 1 + ${job#*:}))
    done
    [ "$(value "$("$WEIR" job show last --json)" .due_at)" = 253402300799999 ]
    for bad in 1e30 nan inf 9007199254740992ms 9223372036854775807s ''; do
        exits 64 "$WEIR" enqueue t --in "$bad"
    done
    exits 64 "$WEIR" enqueue t --at 10000-01-01T00:00:00Z
}

@test "job edit moves the due time, job run lets a job start before all others" {
    "$WEIR" enqueue t --id first
    "$WEIR" enqueue t --id later --in 1h
    "$WEIR" enqueue t --id last --in 2h
    exits 0 "$WEIR" job edit last --at 2100-01-01T00:00:00Z
    [ "$output" = $'last\tdelayed\t2100-01-01T00:00:00.000Z' ]
    exits 0 "$WEIR" job edit last --at 2100-01-01T00:00:00Z --json
    [ "$output" = '{"id":"last","state":"delayed","due_at":4102444800000}' ]
    exits 0 "$WEIR" job run later
    [ "$output" = $'later\tready\t' ]
    if engine_is list; then
        [ "$("$WEIR" job ls -s ready -o id | tr '\n' ' ')" = 'later first ' ]
    else # a stream has no front for what comes in
        [ "$("$WEIR" job ls -s ready -o id | tr '\n' ' ')" = 'first later ' ]
    fi
    exits 0 "$WEIR" job edit later --in 1h
    [ "$("$WEIR" job ls -s ready -o id | tr '\n' ' ')" = 'first ' ]
    exits 0 "$WEIR" job edit later --at 1970-01-01T00:00:00Z
    [ "$("$WEIR" job ls -s ready -o id | tr '\n' ' ')" = 'first later ' ]
    exits 0 "$WEIR" job run later
    exits 0 "$WEIR" audit --deep --quiet
}

@test "a job that does not wait is not edited, and it is said where it is" {
    "$WEIR" enqueue t --id d
    "$WEIR" work -q default --once -- true 3>&-
    id=$(make_dead dead)
    exits 1 "$WEIR" job edit d --in 5s
    says "job d does not wait, it is done"
    exits 1 "$WEIR" job run d
    says E_WRONG_STATE
    exits 1 "$WEIR" job run "$id" --dry-run
    says "it is dead"
    exits 1 "$WEIR" job run nope
    says E_NO_JOB
    exits 64 "$WEIR" job edit d
    says "give one of them"
    exits 64 "$WEIR" job edit d --in 1s --at now
    exits 64 "$WEIR" job edit d --in -1s
}

@test "overdue and upcoming delayed jobs are listed apart" {
    for i in 1 2 3; do "$WEIR" enqueue t --id "soon$i" --in "${i}h"; done
    "$WEIR" enqueue t --id over --in 1ms
    until_true sh -c '[ "$("$0" job ls --overdue -o id)" = over ]' "$WEIR"
    [ "$("$WEIR" job ls --upcoming --limit 2 -o id | tr '\n' ' ')" = 'soon1 soon2 ' ]
    [ "$("$WEIR" job ls -s delayed --overdue -o id)" = over ]
    exits 64 "$WEIR" job ls --overdue -s ready
    exits 64 "$WEIR" job ls --overdue --upcoming
}

@test "a job that was not started in time is expired, waiting, delayed, or replaced (T12)" {
    "$WEIR" enqueue t --id a -q e --expires 100ms
    "$WEIR" enqueue t --id b -q e --in 50ms --expires 100ms
    "$WEIR" enqueue t --id c -q e --expires 1h
    "$WEIR" enqueue t --id d -q e --expires 100ms --unique k
    sleep 0.2
    "$WEIR" work -q e --drain -- true 3>&-
    exits 0 "$WEIR" audit -q e --deep --json
    [ "$(value "$output" '[.enqueued, .done, .expired, .deliveries, .gap]')" = '[4,1,3,1,0]' ]
    exits 1 "$WEIR" job show a
    "$WEIR" enqueue t --id d2 -q e --unique k
    exits 64 "$WEIR" enqueue t --expires 0
    exits 64 "$WEIR" enqueue t --expires -5s
}

@test "an attempt that comes too late does not expire: the job has started (T12)" {
    # A worker that waits already starts it long before it expires.
    "$WEIR" work -q r --max-jobs 1 -- false 3>&- &
    pid=$!
    waits() { redis client list | grep -q 'name=weir-wait .* flags=b'; }
    until_true waits
    "$WEIR" enqueue t -q r --id a --expires 1s --backoff fixed:1200ms --retry 1
    wait "$pid"
    "$WEIR" work -q r -- true 3>&- &
    pid=$!
    until_true sh -c '[ "$("$0" audit -q r --json | jq .done)" = 1 ]' "$WEIR"
    kill "$pid"
    wait "$pid" || true
    [ "$("$WEIR" audit -q r --json | jq -c '[.expired, .deliveries]')" = '[0,2]' ]
}

@test "status and doctor say when nobody moves delayed jobs" {
    "$WEIR" enqueue t --in 1h
    exits 1 "$WEIR" status
    says 'no scheduler runs'
    exits 1 "$WEIR" doctor
    says 'no scheduler runs'
    "$WEIR" scheduler 3>&- 2>/dev/null &
    pid=$!
    until_true "$WEIR" status --quiet
    kill "$pid"
    wait "$pid" || true
    "$WEIR" enqueue t --id late --in 1ms
    until_true sh -c '[ "$("$0" status --json | jq .overdue_ms)" -ge 100 ]' "$WEIR"
    [ "$(value "$("$WEIR" status --json)" .overdue)" = 1 ]
    exits 1 "$WEIR" status --check 'overdue<1'
    exits 0 "$WEIR" status --check 'overdue<2,lag<1h'
}

@test "a worker whose clock steps an hour, back and on, keeps its lease and does not spin (T08)" {
    needs_clock
    "$WEIR" enqueue t -q s --id long
    "$WEIR" enqueue t -q s --id due --in 3s
    WEIR_LEASE=2s with_clock --exec -0h "$WEIR" work -q s -c 2 -- sleep 5 3>&- 2>"$BATS_TEST_TMPDIR/log" &
    pid=$!
    until_true sh -c '[ "$("$0" job show long --json | jq -r .state)" = processing ]' "$WEIR"
    for step in -1h +1h -1h -0h; do
        sleep 0.5
        echo "$step" >"$BATS_TEST_TMPDIR/clock"
    done
    until_true sh -c '[ "$("$0" audit -q s --json | jq .done)" = 2 ]' "$WEIR"
    [ "$("$WEIR" audit -q s --json | jq -c '[.deliveries, .reclaimed, .reclaimed_delayed, .stale, .gap]')" = '[2,0,0,0,0]' ]
    # Four processes, eight seconds: not a second of CPU.
    ticks=0
    for p in $pid $(pgrep -P "$pid"); do
        ticks=$((ticks + $(awk '{ print $14 + $15 }' "/proc/$p/stat")))
    done
    kill "$pid"
    wait "$pid" || true
    echo "$ticks ticks"
    ((ticks < 200))
}

@test "a producer whose clock is a day off delays by the server's clock (T08)" {
    needs_clock
    with_clock +1d "$WEIR" enqueue t --id ahead --in 1h
    with_clock -1d "$WEIR" enqueue t --id behind --in 1h
    now=$(date +%s%3N)
    for id in ahead behind; do
        due=$(value "$("$WEIR" job show $id --json)" .due_at)
        ((due > now + 3590000 && due < now + 3610000))
    done
}
