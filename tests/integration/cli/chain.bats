#!/usr/bin/env bats
# Chains and follow-up jobs on the command line.

load server

setup_file() { start_server main; }
teardown_file() { stop_server main; }
setup() {
    use_server main
}

@test "--then: each step gets the result of the one before" {
    "$WEIR" enqueue a 'x' --id first --then 'b@second,c'
    timeout 60 "$WEIR" work --exec "a=sed s/\$/a/" --exec "b=sed s/\$/b/" --exec "c=sed s/\$/c/" &
    worker=$!
    until_true eval '[ "$("$WEIR" audit -q second --json 2>/dev/null | jq .done)" = 1 ]'
    until_true eval '[ "$("$WEIR" audit -q default --json | jq .done)" = 2 ]'
    kill "$worker"
    wait "$worker" || true
    last=$("$WEIR" job ls -s done -q default -o id | grep -v '^first$')
    [ "$("$WEIR" job result "$last")" = xabc ]
    "$WEIR" audit --deep
}

@test "--then: what it refuses" {
    exits 64 "$WEIR" enqueue a --then ''
    exits 64 "$WEIR" enqueue a --then 'b@'
    exits 64 "$WEIR" enqueue a --then 'b@{'
    exits 64 "$WEIR" enqueue a --then '@q'
    exits 64 "$WEIR" enqueue a --then 'b,,c'
    exits 64 "$WEIR" enqueue a --then "$(printf 't,%.0s' {1..16})t"
}

@test "a line of a bulk file may have a chain" {
    echo '{"type":"a","payload":"y","id":"one","then":"b"}' | "$WEIR" enqueue --from -
    timeout 60 "$WEIR" work -q default --max-jobs 2 --exec "a=sed s/\$/a/" --exec "b=sed s/\$/b/"
    last=$("$WEIR" job ls -s done -o id | grep -v '^one$')
    [ "$("$WEIR" job result "$last")" = yab ]
}

@test "push: a command asks for follow-up jobs, here a queue for people" {
    example=$BATS_TEST_DIRNAME/../../../examples/exec/review.sh
    "$WEIR" enqueue letter 'an invoice' -q letters --id l1
    "$WEIR" enqueue letter 'who knows' -q letters --id l2
    timeout 60 "$WEIR" work -q letters --drain -- "$example"
    [ "$("$WEIR" job result l1)" = bills ]
    [ "$("$WEIR" job result l2)" = unsure ]
    [ "$("$WEIR" job ls -q review -o id)" = review-l2 ]
    [ "$("$WEIR" job payload review-l2)" = 'who knows' ]
}

@test "push: an attempt that fails has no follow-up jobs, one that is no job fails it" {
    "$WEIR" enqueue t --id j --retry 0
    timeout 60 "$WEIR" work -q default --once -- sh -c 'echo "push {\"type\":\"n\"}" >&3; exit 1'
    [ "$("$WEIR" job ls -s ready -o id)" = '' ]
    "$WEIR" enqueue t --id k --retry 0
    timeout 60 "$WEIR" work -q default --once -- sh -c 'echo "push {\"typ\":\"n\"}" >&3'
    "$WEIR" job show k | grep -q 'no member "typ"'
}
