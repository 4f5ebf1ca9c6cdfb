#!/usr/bin/env bats
# cron add, ls, show, next, edit, pause, resume, run, rm, apply.

load server

setup_file() { start_server main; }
teardown_file() { stop_server main; }
setup() { use_server main; }

field() { "$WEIR" cron show "$1" --json | jq -r "$2"; }

@test "cron add prints the next five times, and what may surprise (C12)" {
    exits 0 "$WEIR" cron add noon '0 12 * * *' t -q q
    [ "$(grep -c 'T12:00:00.000Z$' <<<"$output")" = 5 ]
    exits 0 "$WEIR" cron add many '* 0 * * *' t -q q
    says '60 runs in each of these hours'
    exits 0 "$WEIR" cron add either '0 9 13 * 5' t -q q --json
    [ "$(jq -r '.warnings[0].text' <<<"$output")" = \
        'day of month and day of week are both given: a day that matches either of them will do' ]
    [ "$(jq '.next | length' <<<"$output")" = 5 ]
    [ "$("$WEIR" cron next either --json | jq -c .next)" = "$(jq -c .next <<<"$output")" ]
    [ "$("$WEIR" cron next noon --count 7 | wc -l)" = 7 ]
}

@test "an entry shows all that it was given" {
    printf 'bytes\377' >"$BATS_TEST_TMPDIR/p"
    "$WEIR" cron add full '15 30 2 L jan-jun *' report @"$BATS_TEST_TMPDIR/p" -q reports \
        --tz Europe/Berlin --missed all --cap 7 --grace 5s --overlap queue --jitter 250ms \
        --retry 0 --backoff fixed:5s --max-deliveries 0 --timeout 5m --kill-after 3s \
        --expires 1h --unique key:9s --unique-states ready,delayed --meta a=b --meta c='d e' --keep-result 0 \
        --then thumb,mail@post
    [ "$(field full '[.queue, .schedule, .zone, .missed, .missed_cap, .grace_ms, .overlap, .jitter_ms] | @json')" = \
        '["reports","15 30 2 L jan-jun *","Europe/Berlin","all",7,5000,"queue",250]' ]
    [ "$(field full '[.type, .max_retry, .backoff, .max_deliveries, .timeout_ms, .kill_after_ms, .expires_ms] | @json')" = \
        '["report",0,"fixed:5s",0,300000,3000,3600000]' ]
    [ "$(field full '[.unique, .unique_window_ms, .unique_states, .keep_result_ms, .meta] | @json')" = \
        '["key",9000,"ready,delayed",0,{"a":"b","c":"d e"}]' ]
    [ "$(field full '.then | map(.type + "@" + .queue) | @json')" = '["thumb@reports","mail@post"]' ]
    rev=$(field full .revision)
    exits 0 "$WEIR" cron edit full --retry 0
    [ "$(field full .revision)" = "$rev" ] # what is read is what was written
    [ "$(field full .payload_base64 | base64 -d | od -c)" = "$(od -c <"$BATS_TEST_TMPDIR/p")" ]
    exits 0 "$WEIR" cron show full
    says $'unique\tkey:9000ms'
    says $'keep-result\t0s'
    exits 0 "$WEIR" cron ls
    [ "$(cut -f1-4,7,8 <<<"$output")" = $'full\treports\t15 30 2 L jan-jun *\tEurope/Berlin\treport\tactive' ]
}

@test "what cannot be an entry is refused, and says why" {
    exits 65 "$WEIR" cron add x '0 0 30 2 *' t
    says 'no such date'
    exits 65 "$WEIR" cron add x '61 * * * *' t
    says 'minute: a number over 59'
    exits 65 "$WEIR" cron add x '* * *' t
    exits 65 "$WEIR" cron add x 'every 0s' t
    exits 65 "$WEIR" cron add x '@daily' t --tz Mars/X
    says 'no such time zone: Mars/X'
    exits 65 "$WEIR" cron add x '@daily' t --tz ../../etc/passwd
    exits 64 "$WEIR" cron add x '@daily' t --overlap sometimes
    says 'allow, skip, queue, replace'
    exits 64 "$WEIR" cron add x '@daily' t --missed all --cap 0
    exits 64 "$WEIR" cron add '' '@daily' t
    exits 64 "$WEIR" cron add x '@daily' t --in 5m
    exits 64 "$WEIR" cron add x '@daily' t --expires 2030-01-01T00:00:00Z
    head -c 70000 /dev/zero | tr '\0' x >"$BATS_TEST_TMPDIR/big"
    exits 65 "$WEIR" cron add x '@daily' t @"$BATS_TEST_TMPDIR/big"
    says E_TOO_BIG
    exits 0 "$WEIR" cron ls
    says 'No cron entries'
}

@test "without time zone files it says so, and takes nothing for UTC (C07)" {
    TZDIR=/nowhere exits 78 "$WEIR" cron add x '@daily' t --tz Europe/Berlin
    says 'install the package tzdata'
    TZDIR=/nowhere exits 0 "$WEIR" cron add x '@daily' t
    exits 0 "$WEIR" cron add a '0 9 * * *' t --tz Asia/Kolkata
    [[ ${lines[0]} == *T03:30:00.000Z ]]
    exits 0 "$WEIR" cron add b '0 9 1 1 *' t --tz America/St_Johns
    [[ ${lines[0]} == *T12:30:00.000Z ]]
}

@test "adding it again is no change, adding another is refused" {
    "$WEIR" cron add n @daily t x -q q
    rev=$(field n .revision)
    exits 0 "$WEIR" cron add n @daily t x -q q
    [ "$(field n .revision)" = "$rev" ]
    exits 1 "$WEIR" cron add n @hourly t x -q q
    says E_EXISTS
    says 'weir cron edit'
    exits 0 "$WEIR" cron add n @hourly t x -q other
    exits 64 "$WEIR" cron show n
    says 'queues other and q'
    exits 0 "$WEIR" cron show n -q other
}

@test "edit changes what is given and nothing else" {
    "$WEIR" cron add n '0 3 * * *' t x --retry 5 --unique k:1m --meta a=b --tz Europe/Berlin
    exits 0 "$WEIR" cron edit n --schedule '0 4 * * *' --payload y
    [ "$(field n '[.schedule, .payload, .max_retry, .unique, .unique_window_ms, .meta.a, .zone] | @json')" = \
        '["0 4 * * *","y",5,"k",60000,"b","Europe/Berlin"]' ]
    exits 0 "$WEIR" cron edit n --type u --retry 0 --jitter 1s --overlap skip --missed skip
    [ "$(field n '[.type, .payload, .max_retry, .jitter_ms, .overlap, .missed] | @json')" = \
        '["u","y",0,1000,"skip","skip"]' ]
    exits 64 "$WEIR" cron edit n
    exits 1 "$WEIR" cron edit nope --type t
    says E_NO_CRON
    exits 65 "$WEIR" cron edit n --schedule '0 0 31 2 *'
    "$WEIR" cron add plain @daily t && "$WEIR" cron edit plain --payload z
    [[ $(redis HGET "$WEIR_NAMESPACE:{default}:cron" plain) != *retry=* ]] # the queue's default holds
    exits 0 "$WEIR" cron edit n --type v --dry-run
    [ "$(field n .type)" = u ]
}

@test "edit --unset gives a part its default again" {
    "$WEIR" cron add n @daily t x --unique k:1m --unique-states ready,delayed,dead --meta a=b --meta c=d --tz Europe/Berlin \
        --keep-result 1h --retry 5 --then u
    exits 0 "$WEIR" cron edit n --unset unique --unset meta --unset keep-result
    [ "$(field n '[.unique, .unique_window_ms, .unique_states, .meta, .keep_result_ms, .payload, .zone, .max_retry] | @json')" = \
        '[null,null,null,{},86400000,"x","Europe/Berlin",5]' ]
    exits 0 "$WEIR" cron edit n --unset meta --unset tz --unset then --unset payload --meta e=f
    [ "$(field n '[.meta, .zone, .then, .payload] | @json')" = '[{"e":"f"},"UTC",[],""]' ]
    exits 64 "$WEIR" cron edit n --unset type
    says 'unset: "type"'
    exits 64 "$WEIR" cron add m @daily t --unset meta
}

@test "three who edit one entry lose nothing of what the others changed (C09)" {
    "$WEIR" cron add n @daily t
    for who in retry cap max-deliveries; do
        (for i in $(seq 1 20); do "$WEIR" cron edit n --$who "$i" --quiet >/dev/null || exit 1; done) &
    done
    wait
    [ "$(field n '[.max_retry, .missed_cap, .max_deliveries] | @json')" = '[20,20,20]' ]
    exits 0 "$WEIR" cron rm n
    [ "$(redis EXISTS "$WEIR_NAMESPACE:{default}:cron")" = 0 ]
}

@test "pause, resume, run and rm say what they did" {
    "$WEIR" cron add n 'every 1s' t -q q
    exits 0 "$WEIR" cron pause n
    [ "$output" = $'paused\tq\tn' ]
    [ "$(field n '[.state, .paused, .next_at] | @json')" = '["paused",true,null]' ]
    exits 0 "$WEIR" cron run n
    [ "$("$WEIR" job show "$output" --json | jq -r .state)" = ready ]
    exits 0 "$WEIR" cron run n --json
    [ "$(value "$output" .name)" = n ]
    exits 0 "$WEIR" job show "$(value "$output" .id)"
    exits 0 "$WEIR" cron resume n --json
    [ "$(jq -r .action <<<"$output")" = resumed ]
    exits 0 "$WEIR" cron rm n --dry-run
    exits 0 "$WEIR" cron rm n
    [ "$output" = $'removed\tq\tn' ]
    exits 1 "$WEIR" cron rm n
    says E_NO_CRON
    exits 1 "$WEIR" cron pause n
    exits 1 "$WEIR" cron run n
}

@test "a worker runs what an entry makes, and overlap and failure do not stop it (C10)" {
    "$WEIR" cron add n 'every 1s' t -q q --overlap skip --retry 0 --keep-result 0
    "$WEIR" work -q q -- false 3>&- 2>/dev/null &
    pid=$!
    until_true sh -c '[ "$("$0" cron show n --json | jq .fired)" -ge 2 ]' "$WEIR"
    kill -TERM "$pid"
    wait "$pid"
    [ "$("$WEIR" audit --json | jq .gap)" = 0 ]
    [ "$("$WEIR" dead ls -o id | wc -l)" -ge 1 ]
}

@test "what a tick's job asks for comes after its success" {
    "$WEIR" cron add n 'every 1s' t -q q --then next@after --overlap skip
    "$WEIR" work -q q --max-jobs 1 -- true 3>&- 2>/dev/null
    until_true sh -c '[ "$("$0" job ls -q after --json 2>/dev/null | jq -r .type)" = next ]' "$WEIR"
}

@test "apply makes the entries what a file says" {
    cat >"$BATS_TEST_TMPDIR/f" <<'FILE'
# what recurs
[nightly]
schedule = 0 3 * * *
tz       = Europe/Berlin
queue    = reports
type     = report
payload  = {"kind": "nightly"}
meta     = owner=ops
meta     = level=2

[ping]
schedule = every 20s
type = ping
overlap = skip
FILE
    exits 0 "$WEIR" cron apply "$BATS_TEST_TMPDIR/f" --dry-run
    says $'add\treports\tnightly'
    says 'Nothing was stored'
    exits 0 "$WEIR" cron ls
    says 'No cron entries'
    exits 0 "$WEIR" cron apply "$BATS_TEST_TMPDIR/f"
    [ "$(field nightly '[.payload, .meta.level] | @json')" = '["{\"kind\": \"nightly\"}","2"]' ]
    rev=$(field nightly .revision)
    exits 0 "$WEIR" cron apply - <"$BATS_TEST_TMPDIR/f"
    says $'same\treports\tnightly'
    [ "$(field nightly .revision)" = "$rev" ]
    sed -i 's/^schedule = 0 3/schedule = 0 4/; s/level=2/level=3/' "$BATS_TEST_TMPDIR/f"
    exits 0 "$WEIR" cron apply "$BATS_TEST_TMPDIR/f" --json
    [ "$(grep nightly <<<"$output" | jq -c '.diff | map(.sign + .line)')" = \
        '["-schedule = 0 3 * * *","-meta = level=2","+schedule = 0 4 * * *","+meta = level=3"]' ]
}

@test "apply --prune removes what the file does not name, and asks" {
    printf '[a]\nschedule = @daily\ntype = t\nqueue = q\n' >"$BATS_TEST_TMPDIR/f"
    "$WEIR" cron add b @daily t -q q
    "$WEIR" cron add c @daily t -q else
    exits 64 "$WEIR" cron apply "$BATS_TEST_TMPDIR/f" --prune
    says 'add --yes'
    exits 0 "$WEIR" cron apply "$BATS_TEST_TMPDIR/f" --prune --dry-run
    says $'remove\tq\tb'
    exits 0 "$WEIR" cron apply "$BATS_TEST_TMPDIR/f" --prune --yes
    [ "$("$WEIR" cron ls -o id | sort | tr '\n' ' ')" = 'a c ' ]
    exits 0 "$WEIR" cron apply "$BATS_TEST_TMPDIR/f" --prune -q else --yes
    [ "$("$WEIR" cron ls -o id)" = a ]
}

@test "a file that is wrong changes nothing and names its line" {
    bad() {
        printf '[ok]\nschedule = @daily\ntype = t\n%b' "$1" >"$BATS_TEST_TMPDIR/f"
        exits 65 "$WEIR" cron apply "$BATS_TEST_TMPDIR/f"
        says "$2"
    }
    bad 'colour = red\n' ':4: "colour" is nothing of a cron entry'
    bad 'schedule = @hourly\n' ':4: schedule is given twice'
    bad 'nonsense\n' ':4: neither'
    bad '[b\n' ':4: a section without'
    bad '[ok]\nschedule = @daily\ntype = t\n' 'there already (line 1)'
    bad '[b]\nschedule = 0 0 31 4 *\ntype = t\n' ':4: b: schedule: no such date'
    bad '[b]\nschedule = @daily\n' ':4: b: type'
    bad '[b]\nretry = many\n' ':5:'
    exits 0 "$WEIR" cron ls
    says 'No cron entries'
    exits 74 "$WEIR" cron apply /nowhere
}

@test "schedulers whose clocks are an hour off fire by the server's clock (C08)" {
    with_clock +1h "$WEIR" cron add n 'every 1s' t -q q --missed all
    with_clock --exec +1h "$WEIR" scheduler -q q 3>&- 2>/dev/null &
    ahead=$!
    until_true sh -c '[ "$("$0" cron show n --json | jq .fired)" -ge 2 ]' "$WEIR"
    with_clock --exec -1h "$WEIR" scheduler -q q 3>&- 2>/dev/null &
    behind=$!
    kill -9 "$ahead"
    wait "$ahead" || true
    # libfaketime moves timers that count from the boot, too, so this one wakes only when it
    # looks again; what it fires then is right by the server's clock.
    for _ in 1 2 3; do
        until_true sh -c '[ "$("$0" cron show n --json | jq .fired)" -ge 5 ]' "$WEIR" && break
    done
    kill "$behind"
    wait "$behind" || true
    now=$(($(date +%s) * 1000))
    "$WEIR" job ls -q q --json | jq -e --argjson now $now \
        '(.id | split(":")[2] | tonumber) as $tick | $tick <= .enqueued_at and $tick > $now - 60000' >/dev/null
    # Every tick once.
    [ "$("$WEIR" job ls -q q -o id | sort | awk -F: 'NR > 1 && $3 != last + 1000 { bad = 1 } { last = $3 } END { print bad + 0 }')" = 0 ]
}

@test "status tells of the entries and which is due next" {
    "$WEIR" enqueue t -q q
    exits 0 "$WEIR" status -o table
    [[ $output != *schedules* ]]
    "$WEIR" cron add far '0 0 1 1 *' t -q q
    "$WEIR" cron add near '@hourly' t -q q --tz Asia/Kolkata
    "$WEIR" cron add off 'every 1s' t -q q && "$WEIR" cron pause off
    exits 0 "$WEIR" status -o table
    says 'schedules 3, next "near" in '
    says '(Asia/Kolkata)'
}

@test "cron run --id: the repeat of a call makes no second job, whatever ran meanwhile (N12)" {
    "$WEIR" cron add n @daily t x --keep-result 0
    exits 0 "$WEIR" cron run n --id deploy-42
    says 'cron:n:run-deploy-42'
    "$WEIR" cron run n
    timeout 60 "$WEIR" work -q default --drain -- true
    exits 0 "$WEIR" cron run n --id deploy-42
    says 'cron:n:run-deploy-42'
    [ "$(field n .fired)" = 2 ]
    [ "$(value "$("$WEIR" audit --json)" .enqueued)" = 2 ]
    exits 64 "$WEIR" cron run n --id 'two words'
    exits 64 "$WEIR" cron run n --id ''
}
