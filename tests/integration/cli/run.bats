#!/usr/bin/env bats
# weir run: a command as a job, what a worker allows, and how it ends.

load server

setup_file() { start_server main; }
teardown_file() { stop_server main; }
setup() {
    use_server main
    unset WEIR_ALLOW_COMMAND_JOBS WEIR_ALLOW_COMMAND_ENV WEIR_ALLOW_COMMAND_CWD \
        WEIR_REQUIRE_SIGNATURE WEIR_SIGNATURE_KEY
    umask 022
}

teardown() {
    if [ -n "${daemon:-}" ]; then
        kill -TERM "$daemon" 2>/dev/null || true
        wait "$daemon" || true
    fi
}

# worker [flags]: one in the background.
worker() {
    "$WEIR" work -q default -c 2 "$@" 3>&- 2>worker.log &
    daemon=$!
}

# value JSON is in server.bash; this one asks for a job.
job() {
    "$WEIR" job show "$1" --json | jq -r "${2:-.state}"
}

# dead ID TEXT: it is dead at once, and says so.
dead() {
    [ "$(job "$1")" = dead ] || { job "$1" .; return 1; }
    [ "$(job "$1" .deliveries)" = 1 ]
    [[ "$(job "$1" .error)" == *"$2"* ]] || { job "$1" .error; return 1; }
}

@test "it waits, prints what the command printed and nothing else, and exits as it did" {
    worker --allow-command-jobs 'sh, printf'
    "$WEIR" run -- printf 'a\0b\n%s' 'two words' >out 2>err
    printf 'a\0b\ntwo words' | cmp - out
    [ ! -s err ]
    for code in 1 3 65 127; do
        exits $code "$WEIR" run --retry 0 -- sh -c "echo gone >&2; exit $code"
        says "exit $code: gone"
    done
    "$WEIR" run --retry 0 -- sh -c 'echo out; exit 9' >out 2>/dev/null || [ $? = 9 ]
    [ ! -s out ]
    exits 143 "$WEIR" run --retry 0 -- sh -c 'kill -TERM $$'
    says "killed by SIGTERM"
    exits 124 "$WEIR" run --retry 0 --timeout 200ms -- sh -c 'sleep 20'
    says timeout
}

@test "a command that failed is tried again, and the last try counts" {
    worker --allow-command-jobs sh
    exits 0 "$WEIR" run --retry 2 --backoff fixed:10ms -- \
        sh -c "echo x >>$PWD/tries; [ \$(wc -l <$PWD/tries) = 3 ]"
    [ "$(wc -l <tries)" = 3 ]
}

@test "what it writes to standard error is seen here as it comes, of every try" {
    worker --allow-command-jobs sh
    "$WEIR" run --retry 1 --backoff fixed:10ms -- sh -c "echo try \$WEIR_ATTEMPT >&2
        until [ -e $PWD/go ]; do sleep 0.05; done; printf 'no newline' >&2
        [ \$WEIR_ATTEMPT = 2 ] && echo out" >out 2>err 3>&- &
    waiting=$!
    until_true grep -qx 'try 1' err
    [ ! -s out ]
    touch go
    wait "$waiting"
    [ "$(cat out)" = out ]
    [ "$(cat err)" = $'try 1\nno newline\ntry 2\nno newline' ]
    for i in 1 2 3 4 5; do
        [ "$("$WEIR" run -- sh -c 'echo short >&2' 2>&1)" = short ]
    done
    [ -z "$("$WEIR" run --quiet -- sh -c 'echo short >&2' 2>&1)" ]
}

@test "arguments of every kind arrive as they are" {
    worker --allow-command-jobs '/usr/bin/*'
    odd=$'line\none \t%41=\\ "q" \xff\xc3\xa4'
    [ "$("$WEIR" run -- printf '<%s>' '' ' ' -- -x "$odd")" = "<>< ><--><-x><$odd>" ]
}

@test "standard input is empty unless it is sent along (X12)" {
    worker --allow-command-jobs 'cat, sort'
    [ -z "$(echo here | "$WEIR" run -- cat)" ]
    [ "$(printf 'b\na\n' | "$WEIR" run --stdin -- sort)" = $'a\nb' ]
    head -c 60000 /dev/urandom >bytes
    "$WEIR" run --stdin=bytes -- cat | cmp - bytes
    exits 125 "$WEIR" run --stdin=nothing -- cat
    head -c 1100000 /dev/zero >big
    exits 125 "$WEIR" run --stdin=big -- cat
    says E_TOO_BIG
}

@test "its environment is clean, with what is allowed of what was sent (X14)" {
    export SECRET=hushhush PGHOST=db1
    worker --allow-command-jobs env
    "$WEIR" run --env TZ=Asia/Tokyo --env LC_ALL=C --name nightly -- env | sort >got
    grep -qx TZ=Asia/Tokyo got
    grep -qx LC_ALL=C got
    grep -qx WEIR_META_NAME=nightly got
    grep -q '^PATH=' got
    run grep -E 'hushhush|WEIR_URL|PGHOST' got
    [ -z "$output" ]
    exits 126 "$WEIR" run --env PGHOST -- env
    says "the variable PGHOST fits no pattern of allow_command_env"
    exits 126 "$WEIR" run --env LD_PRELOAD=/tmp/x.so -- env
    says allow_command_env
    kill -TERM "$daemon"
    wait "$daemon"
    WEIR_ALLOW_COMMAND_ENV='PG*' worker --allow-command-jobs env
    "$WEIR" run --env PGHOST -- env | grep -qx PGHOST=db1
    exits 125 "$WEIR" run --env NOT_THERE -- env
    exits 125 "$WEIR" run --env 1x=2 -- env
    exits 125 "$WEIR" run --env WEIR_JOB_ID=2 -- env
}

@test "it runs in a private folder, or in one that is allowed" {
    mkdir -p ok/a no
    WEIR_ALLOW_COMMAND_CWD="$PWD/ok/*" worker --allow-command-jobs 'sh,pwd'
    exits 0 "$WEIR" run -- sh -c 'pwd; touch here; ls'
    [ "${lines[1]}" = here ]
    [ ! -e "${lines[0]}" ]
    [ "$("$WEIR" run --cwd "$PWD/ok/a" -- pwd)" = "$(realpath ok/a)" ]
    exits 126 "$WEIR" run --cwd "$PWD/no" -- pwd
    says allow_command_cwd
    ln -s ../no ok/link
    exits 126 "$WEIR" run --cwd "$PWD/ok/link" -- pwd
    exits 126 "$WEIR" run --cwd "$PWD/ok/../ok/a" -- pwd
    exits 125 "$WEIR" run --cwd ok/a -- pwd
}

@test "only what the worker allows is run: names, paths, links and dots do not help" {
    mkdir bin other
    printf '#!/bin/sh\necho tool\n' >bin/tool
    printf '#!/bin/sh\necho evil\n' >other/evil
    printf 'echo no format\n' >bin/shapeless
    printf '#!/no/such/interpreter\n' >bin/lost
    chmod +x bin/* other/*
    touch bin/plain
    ln -s ../other/evil bin/evil
    ln -s ../bin/tool other/tool
    ln -s ../bin/tool other/rm
    worker --allow-command-jobs "$PWD/bin/*"
    [ "$("$WEIR" run -- "$PWD/bin/tool")" = tool ]
    [ "$("$WEIR" run -- "$PWD/other/tool")" = tool ]
    for trick in "$PWD/other/evil" "$PWD/bin/evil" "$PWD/bin/../other/evil" \
        "$PWD/bin/../bin/tool" ../bin/tool bin/tool ./bin/tool "$PWD/other/rm" \
        "$PWD/bin" "$PWD/bin/." sh /bin/sh ' '; do
        run timeout 60 "$WEIR" run --retry 0 -- "$trick"
        [ "$status" = 126 ] || [ "$trick" = ' ' ] || { echo "$trick: $status $output"; false; }
        [[ "$output" != *evil$'\n'* ]]
    done
    "$WEIR" run --retry 3 --id relative -- bin/tool || true
    dead relative allow_command_jobs
    "$WEIR" run --retry 3 --id dots -- "$PWD/bin/../bin/tool" || true
    dead dots allow_command_jobs
    "$WEIR" run --retry 3 --id link -- "$PWD/bin/evil" || true
    dead link allow_command_jobs
    chmod o+w bin/tool
    exits 126 "$WEIR" run -- "$PWD/bin/tool"
    says 'everybody may write'
    # No shell guesses what a file means.
    exits 126 "$WEIR" run --retry 0 -- "$PWD/bin/shapeless"
    says '#! line'
    exits 127 "$WEIR" run --retry 0 -- "$PWD/bin/lost"
    exits 126 "$WEIR" run --retry 0 -- "$PWD/bin/plain"
    says 'ermission denied'
}

@test "a program of many names is run under the name that is allowed, and under no other" {
    mkdir bin
    printf '#!/bin/sh\necho box "$@"\n' >bin/box
    chmod +x bin/box
    ln -s box bin/unpack
    ln -s ../bin/box bin/shell
    worker --allow-command-jobs "$PWD/bin/unpack"
    [ "$("$WEIR" run -- "$PWD/bin/unpack" a)" = 'box a' ]
    for name in box shell; do
        exits 126 "$WEIR" run --retry 0 -- "$PWD/bin/$name" sh -c 'echo anything'
        says allow_command_jobs
    done
}

@test "a program that is not there: 127, and the worker goes on with others (R10)" {
    worker --allow-command-jobs 'echo, /no/such/*'
    for i in 1 2 3 4 5; do
        exits 127 "$WEIR" run --retry 0 -- /no/such/program
        says '/no/such/program: No such file or directory'
    done
    exits 127 "$WEIR" run --retry 0 -- no-such-program-anywhere
    [ "$("$WEIR" run -- echo fine)" = fine ]
    long=$(head -c 140000 /dev/zero | tr '\0' x)
    printf 'weir-command/1\nargv echo %s\n\n' "$long" | "$WEIR" enqueue weir.exec - --id long
    exits 1 timeout 20 "$WEIR" job wait long
    dead long 'too long'
    [ "$("$WEIR" run -- echo fine)" = fine ]
}

@test "a worker that says nothing of command jobs leaves them alone, whatever else it runs" {
    "$WEIR" run --detach --id waits -- echo hello
    exits 0 "$WEIR" enqueue other --id other
    worker -- echo handler
    exits 0 "$WEIR" job wait other --timeout 20s
    [ "$("$WEIR" job result other)" = handler ]
    kill -TERM "$daemon"
    wait "$daemon"
    [ "$(job waits .attempts)" = 0 ]
    worker --allow-command-jobs echo
    exits 0 "$WEIR" job wait waits --timeout 20s
    [ "$("$WEIR" job result waits)" = hello ]
}

@test "who waits for nobody is told what is missing" {
    run timeout 8 "$WEIR" run -- echo hello
    [ "$status" = 124 ]
    says allow_command_jobs
}

@test "detached: only the id, JSON, and the exit statuses of enqueue" {
    id=$("$WEIR" run --detach -q q --in 1h --meta a=b --name x -- ls -l)
    [ "$("$WEIR" job show "$id" --json | jq -r '[.type, .queue, .state] | join(" ")')" = 'weir.exec q delayed' ]
    [ "$("$WEIR" job payload "$id")" = $'weir-command/1\nargv ls -l' ]
    "$WEIR" run --detach --id shown --in 1h -- echo "it's" 'two words' '' plain
    [ "$(job shown .command)" = "echo 'it'\\''s' 'two words' '' plain" ]
    "$WEIR" job show shown | grep -qF $'command\techo '
    exits 0 "$WEIR" run --detach --json --id mine -- ls
    [ "$(value "$output" '[.id, .type, .existed] | tostring')" = '["mine","weir.exec",false]' ]
    exits 0 "$WEIR" run --detach --json --id mine -- ls
    [ "$(value "$output" .existed)" = true ]
    exits 1 "$WEIR" run --detach --id mine -- ls -l
    says E_EXISTS
    exits 64 "$WEIR" run --detach
    exits 69 env WEIR_URL=unix:///nowhere "$WEIR" run --detach -- ls || [ "$status" = 125 ]
    exits 0 "$WEIR" run --detach --dry-run -- ls
    says 'Nothing was stored'
}

@test "mistakes end with 125, since the command may use all others" {
    exits 125 "$WEIR" run
    says 'weir run [FLAGS] -- CMD'
    exits 125 "$WEIR" run ls
    says 'comes after --'
    exits 125 "$WEIR" run --
    exits 125 "$WEIR" run --bogus -- ls
    exits 64 "$WEIR" run --wait --detach -- ls
    exits 125 "$WEIR" run --shell -- echo two words
    exits 125 "$WEIR" run --keep-result 0 -- ls
    exits 125 "$WEIR" run --retry many -- ls
    exits 125 env WEIR_URL=unix:///nowhere "$WEIR" run -- ls
}

@test "--shell is one line for /bin/sh, which must be allowed as any other" {
    worker --allow-command-jobs sh
    [ "$("$WEIR" run --shell -- 'printf "b\na\n" | sort | head -1; echo $0')" = $'a\nweir-job' ]
}

@test "--json gives the whole job, and the exit status is still the command's" {
    worker --allow-command-jobs sh
    exits 4 "$WEIR" run --json --retry 0 -- sh -c 'exit 4'
    "$WEIR" run --json --id j -- sh -c 'echo hi' >out
    [ "$(jq -r '[.id, .state, .result] | join(" ")' out)" = 'j done hi' ]
}

@test "Ctrl-C leaves the job, and says how to follow it" {
    "$WEIR" queue create default
    # A shell lets what it starts with & ignore SIGINT.
    python3 -c 'import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])' "$WEIR" run --id left -- ls 2>err 3>&- &
    waiting=$!
    until_true "$WEIR" job show left --quiet
    until_true kill -INT "$waiting"
    wait "$waiting" || status=$?
    [ "$status" = 130 ]
    grep -q 'weir job wait left' err
    [ "$(job left)" = ready ]
}

@test "a job that is cancelled ends the wait" {
    "$WEIR" run --id off -- ls 2>err 3>&- &
    waiting=$!
    until_true "$WEIR" job show off --quiet
    "$WEIR" job cancel off
    wait "$waiting" || status=$?
    [ "$status" = 125 ]
    grep -q 'was cancelled' err
}

@test "with require_signature a job must be signed by a key of the file, and unchanged" {
    printf '# keys\nabcdefghijklmnopqrstuvwxyz\n' >key
    printf 'zyxwvutsrqponmlkjihgfedcba\n' >other
    chmod 600 key other
    WEIR_REQUIRE_SIGNATURE=$PWD/key worker --allow-command-jobs echo
    export WEIR_SIGNATURE_KEY=$PWD/key
    [ "$("$WEIR" run -- echo signed)" = signed ]
    [ "$("$WEIR" run --env TZ=UTC --stdin=key --id 'my id' -- echo also)" = also ]
    WEIR_SIGNATURE_KEY=$PWD/other exits 126 "$WEIR" run --retry 3 --id wrong -- echo x
    says 'its signature is wrong'
    dead wrong require_signature
    exits 126 env -u WEIR_SIGNATURE_KEY "$WEIR" run -- echo x
    says 'it is not signed'
    # What was signed for one id, queue or command is no good for another.
    id=$("$WEIR" run --detach --in 1h -- echo once)
    "$WEIR" job payload "$id" >payload
    "$WEIR" enqueue weir.exec @payload --id again
    exits 1 timeout 20 "$WEIR" job wait again
    dead again 'its signature is wrong'
    sed 's/once/twice/' payload | "$WEIR" enqueue weir.exec - --id changed
    exits 1 timeout 20 "$WEIR" job wait changed
    dead changed 'its signature is wrong'
    # It is over while nobody may start it.
    "$WEIR" queue pause default
    id=$("$WEIR" run --detach --signed-for 1ms -- echo late)
    over=$(($(date +%s%3N) + 100))
    until_true eval '[ "$(date +%s%3N)" -gt "$over" ]'
    "$WEIR" queue resume default
    exits 1 timeout 20 "$WEIR" job wait "$id"
    dead "$id" 'its signature is over'
    chmod 644 key
    exits 125 "$WEIR" run -- echo x
    says 'everybody may read'
    exits 78 env WEIR_REQUIRE_SIGNATURE="$PWD/key" "$WEIR" work --allow-command-jobs echo
}

@test "payloads that are no command are dead and say why" {
    worker --allow-command-jobs '*'
    "$WEIR" enqueue weir.exec 'rm -rf /' --id text
    printf 'weir-command/1\nargv echo\nuser root\n\n' | "$WEIR" enqueue weir.exec - --id newer
    "$WEIR" enqueue weir.exec --id empty
    for id in text newer empty; do
        exits 1 timeout 20 "$WEIR" job wait $id
        dead $id 'not a command job'
    done
}

@test "the bounds of command jobs are those of [handler.weir.exec]" {
    cat >conf <<'E'
allow_command_jobs = sh
[handler.weir.exec]
env = FROM=file
rlimit_nofile = 55
result = last-line
exit.permanent = 7
E
    worker --config conf
    [ "$("$WEIR" run -- sh -c 'echo first; echo $FROM $(ulimit -n)')" = 'file 55' ]
    exits 7 "$WEIR" run --retry 5 --id p -- sh -c 'exit 7'
    dead p 'exit 7'
}

@test "a file that everybody may write says nothing of command jobs" {
    for key in allow_command_jobs allow_command_env allow_command_cwd require_signature signature_key; do
        printf '%s = /x\n' $key >conf
        chmod 666 conf
        exits 78 "$WEIR" status --config conf
        says "conf:1: holds a $key, and everybody may write"
    done
}

@test "patterns that can never match, and files of keys that are none, stop the worker" {
    for list in '' , bin/x ./x '/bin/../x' 'ff*'; do
        exits 78 "$WEIR" work --allow-command-jobs "$list"
    done
    exits 78 env WEIR_ALLOW_COMMAND_CWD=here "$WEIR" work --allow-command-jobs '*'
    exits 78 env WEIR_REQUIRE_SIGNATURE=/nowhere "$WEIR" work --allow-command-jobs '*'
    exits 64 "$WEIR" work --exec 'weir.exec=cat'
    says 'bring their own command'
}

@test "weir dev runs any command, and warns of it" {
    unset WEIR_URL WEIR_NAMESPACE
    export XDG_RUNTIME_DIR
    XDG_RUNTIME_DIR=$(mktemp -d)
    "$WEIR" dev 3>&- 2>said &
    daemon=$!
    until_true "$WEIR" status --quiet
    [ "$("$WEIR" run --env ANY=1 --cwd /usr -- sh -c 'echo $ANY; pwd')" = $'1\n/usr' ]
    grep -q '^warning .*weir run' said
    kill -TERM "$daemon"
    wait "$daemon"
    rm -rf "$XDG_RUNTIME_DIR"
}
