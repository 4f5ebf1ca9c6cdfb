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
    [ "$("$WEIR" job ls -s ready -o id | tr '\n' ' ')" = 'later first ' ]
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
