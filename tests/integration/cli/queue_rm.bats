#!/usr/bin/env bats
# weir queue rm: queues that nobody uses can be removed, all others stay.

load server

setup_file() { start_server main; }
teardown_file() { stop_server main; }
setup() { use_server main; }
teardown() { [ -z "${worker:-}" ] || kill "$worker" 2>/dev/null || true; }

keys() { redis KEYS "$WEIR_NAMESPACE:*" | grep -v ':worker' || true; }
told() { # TEXT
    exits 1 "$WEIR" queue rm q --yes
    says "$1"
}
no_keys() { [ "$(keys)" = '' ]; }

@test "a queue in use is refused with what it holds, and stays (M08)" {
    "$WEIR" enqueue t -q q --id j
    exits 1 "$WEIR" queue rm q --yes
    says 'queue q is in use: 1 job waits  [E_WRONG_STATE]'
    says 'or cancel it: weir queue purge q'
    [ "$(grep -c E_WRONG_STATE <<<"$output")" = 1 ]
    exits 0 "$WEIR" queue purge q --yes
    "$WEIR" cron add n @daily t -q q
    exits 1 "$WEIR" queue rm q --yes
    says '1 cron entry makes jobs in it'
    says 'weir cron ls -q q'
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
    says "weir worker stop $("$WEIR" worker ls -o id)"
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

# Each with the state of a queue that it names; what the script answers first is told.
@test "every refusal says what to do" {
    local key="$WEIR_NAMESPACE:{q}"
    "$WEIR" queue create q
    redis HSET "$key:producers" c "1 9999999999999 x"
    told "It may repeat its call: wait a minute after its last one: weir queue rm q"
    redis ZADD "$key:windows" 9999999999999 k
    told "Wait until the TTL of its --unique KEY:TTL is over."
    "$WEIR" cron add n @daily t -q q
    told "Remove it with weir cron rm: weir cron ls -q q"
    redis HSET "$key:config" moving 'list 0 copy'
    told "See what goes on with it or takes it back: weir queue show q"
    redis HSET "$key:outbox" t x
    told "A worker or a scheduler enqueues them: weir scheduler -q q"
    redis HSET "$key:jobs" j x
    told "See which: weir audit --deep -q q"
    redis ZADD "$key:kept" 1 j
    told "It goes when its --keep-result is over: weir job ls -s done -q q"
    redis ZADD "$key:dead" 1 j
    told "weir dead retry --all -q q; weir dead purge --all -q q"
    redis ZADD "$key:delayed" 1 j
    told "Let a worker run it when it is due, or cancel it: weir queue purge q"
    redis ZADD "$key:processing" 1 j
    told "Wait until it ends, or cancel it: weir job ls -s processing -q q"
    redis DEL "$key:producers" "$key:windows" "$key:outbox" "$key:jobs" "$key:kept" \
        "$key:dead" "$key:delayed" "$key:processing"
}
