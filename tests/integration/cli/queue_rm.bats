#!/usr/bin/env bats
# weir queue rm: queues that nobody uses can be removed, all others stay.

load server

setup_file() { start_server main; }
teardown_file() { stop_server main; }
setup() { use_server main; }
teardown() { [ -z "${worker:-}" ] || kill "$worker" 2>/dev/null || true; }

keys() { redis KEYS "$WEIR_NAMESPACE:*" | grep -v ':worker' || true; }
no_keys() { [ "$(keys)" = '' ]; }

@test "a queue in use is refused with what it holds, and stays (M08)" {
    "$WEIR" enqueue t -q q --id j
    exits 1 "$WEIR" queue rm q --yes
    says 'queue q is in use: 1 job waits  [E_WRONG_STATE]'
    "$WEIR" job cancel j
    "$WEIR" cron add n @daily t -q q
    exits 1 "$WEIR" queue rm q --yes
    says '1 cron entry makes jobs in it'
    "$WEIR" cron rm n
    exits 64 "$WEIR" queue rm q # nobody to ask
    says 'add --yes'
    exits 0 "$WEIR" queue rm q --dry-run
    says 'Would remove queue "q"'
    [ "$("$WEIR" queue ls -o id)" = q ]
    exits 64 "$WEIR" queue rm '{'
    exits 1 "$WEIR" queue rm nope --yes
    says E_NO_QUEUE
}

@test "an empty queue goes with all its keys, and its past is told" {
    "$WEIR" enqueue t -q q --id a --keep-result 0
    "$WEIR" enqueue t -q q --id b
    "$WEIR" job cancel b
    timeout 60 "$WEIR" work -q q --drain -- true
    "$WEIR" queue rm q --json --yes >removed
    [ "$(jq -c '[.queue,.result,.enqueued,.done,.cancelled,.expired,.purged]' removed)" = '["q","removed",2,1,1,0,0]' ]
    until_true no_keys
    "$WEIR" enqueue t -q q
    [ "$(value "$("$WEIR" audit --json)" .enqueued)" = 1 ]
}

@test "a worker that names it keeps it; one that serves every queue lets it go, and serves it when it comes again" {
    "$WEIR" enqueue t -q q --keep-result 0
    timeout 100 "$WEIR" work -q q -- true 3>&- &
    worker=$!
    until_true eval '[ "$("$WEIR" worker ls -o id | wc -l)" = 1 ]'
    until_true eval '[ "$("$WEIR" audit --json | jq .done)" = 1 ]'
    exits 1 "$WEIR" queue rm q --yes
    says 'serves it'
    kill -TERM "$worker"
    wait "$worker"
    timeout 100 "$WEIR" work -- true 3>&- &
    worker=$!
    "$WEIR" enqueue t -q q --keep-result 0
    until_true eval '[ "$("$WEIR" audit --json | jq .done)" = 2 ]'
    exits 0 "$WEIR" queue rm q --yes
    until_true no_keys # also of what its scheduler held
    "$WEIR" enqueue t -q q --keep-result 0 --in 10ms
    until_true eval '[ "$("$WEIR" audit --json | jq .done)" = 1 ]'
}
