#!/usr/bin/env bats
# Servers that are away, wrong, full, locked or read-only; wrong keys; other users.

load server

setup_file() {
    start_server main
    start_server locked --requirepass 'open sesame'
    start_server small --maxmemory 3mb --maxmemory-policy noeviction
}
teardown_file() {
    stop_server main
    stop_server locked
    stop_server small
}
setup() { use_server main; }

@test "an unreachable server: exit 69 and how to start one" {
    export WEIR_URL=unix:///no/such/socket
    for command in 'enqueue t' status audit 'job show x' 'queue ls' doctor 'dead ls' 'worker ls'; do
        exits 69 "$WEIR" $command --command-timeout 1s
        says E_CONNECT
        says "weir dev"
    done
}

@test "a server that is no Redis: exit 69" {
    dir=$(mktemp -d)
    python3 - "$dir/s" 3>&- <<'P' &
import socket, sys
s = socket.socket(socket.AF_UNIX)
s.bind(sys.argv[1])
s.listen(1)
c, _ = s.accept()
c.recv(4096)
c.sendall(b"HTTP/1.0 400 Bad Request\r\n\r\n")
c.close()
P
    until_true [ -S "$dir/s" ]
    WEIR_URL=unix://$dir/s run "$WEIR" status --command-timeout 2s
    [ "$status" = 69 ]
    wait
    rm -rf "$dir"
}

@test "a server that never answers is given up in time" {
    dir=$(mktemp -d)
    python3 - "$dir/s" 3>&- <<'P' &
import socket, sys
s = socket.socket(socket.AF_UNIX)
s.bind(sys.argv[1])
s.listen(1)
c, _ = s.accept()
while c.recv(4096):
    pass
P
    until_true [ -S "$dir/s" ]
    begin=$SECONDS
    WEIR_URL=unix://$dir/s run "$WEIR" status --command-timeout 500ms
    [ "$status" = 69 ] || [ "$status" = 76 ]
    ((SECONDS - begin < 5))
    wait
    rm -rf "$dir"
}

@test "a missing or wrong password: exit 77; the right one in four ways" {
    use_server locked
    exits 77 "$WEIR" status
    says E_DENIED
    REDISCLI_AUTH=wrong exits 77 "$WEIR" status
    REDISCLI_AUTH='open sesame' exits 0 "$WEIR" status
    printf 'open sesame\n' >"$BATS_TEST_TMPDIR/pw"
    exits 0 "$WEIR" status --password-file "$BATS_TEST_TMPDIR/pw"
    WEIR_PASSWORD_FILE=$BATS_TEST_TMPDIR/pw exits 0 "$WEIR" status
    printf 'password = open sesame\n' >"$BATS_TEST_TMPDIR/conf"
    exits 0 "$WEIR" status --config "$BATS_TEST_TMPDIR/conf"
    chmod 666 "$BATS_TEST_TMPDIR/pw"
    exits 78 "$WEIR" status --password-file "$BATS_TEST_TMPDIR/pw"
}

@test "a user without the right to run scripts: exit 77" {
    redis ACL SETUSER weak on '>pw' '~*' '&*' +@all -@scripting
    REDISCLI_AUTH=unused WEIR_URL="unix://$(server_socket main)" exits 77 "$WEIR" status
    redis ACL SETUSER default nopass -@scripting
    exits 77 "$WEIR" enqueue t
    redis ACL SETUSER default +@all
    exits 0 "$WEIR" enqueue t
}

@test "a key of the wrong type changes nothing: exit 70" {
    "$WEIR" queue create w
    redis SET "$(waiting_key w)" text
    exits 70 "$WEIR" enqueue t -q w
    says E_CORRUPT
    [ "$(redis EXISTS "$WEIR_NAMESPACE:{w}:jobs")" = 0 ]
}

@test "two engines for one queue: exit 78" {
    "$WEIR" queue create e
    redis HSET "$WEIR_NAMESPACE:{e}:config" engine other
    other_engine e
    exits 78 "$WEIR" enqueue t -q e
    says E_WRONG_ENGINE
}

@test "a full Redis refuses jobs and can still be emptied: exit 75" {
    use_server small
    head -c 60000 /dev/urandom | base64 -w0 >"$BATS_TEST_TMPDIR/p"
    for i in {1..100}; do
        run "$WEIR" enqueue t "@$BATS_TEST_TMPDIR/p"
        [ "$status" = 0 ] || break
    done
    [ "$status" = 75 ]
    says E_FULL
    exits 0 "$WEIR" queue purge default --yes
    [ "$("$WEIR" audit --json | jq -c '[.ready, .gap]')" = '[0,0]' ]
}

@test "a read-only replica: exit 77" {
    start_server replica --replicaof 127.0.0.1 1 --replica-serve-stale-data yes
    use_server replica
    run "$WEIR" enqueue t
    stop_server replica
    [ "$status" = 77 ]
    says E_READONLY
}

@test "a server that is loading or away for a moment is waited for" {
    redis CLIENT PAUSE 300 ALL
    exits 0 "$WEIR" enqueue t
}

@test "a second user on this machine can use the server but not read a private file" {
    [ "$(id -u)" = 0 ] || skip "needs root to become another user"
    dir=$(cat "$BATS_FILE_TMPDIR/main.dir")
    chmod 755 "$dir"
    chmod 777 "$dir/s"
    cp "$WEIR" "$dir/weir"
    printf 'namespace = other\n' >"$dir/private.conf"
    chmod 600 "$dir/private.conf"
    exits 0 setpriv --reuid 65534 --regid 65534 --clear-groups env HOME=/nonexistent \
        WEIR_URL="$WEIR_URL" WEIR_NAMESPACE=second "$dir/weir" enqueue t --id theirs
    [ "$output" = theirs ]
    exits 0 "$WEIR" -N second job show theirs
    exits 78 setpriv --reuid 65534 --regid 65534 --clear-groups \
        "$dir/weir" status --config "$dir/private.conf"
}

@test "a key of the wrong type: the error and doctor name the queue" {
    exits 0 "$WEIR" enqueue t x -q healthy
    exits 0 "$WEIR" enqueue t x -q broken
    redis set "$(waiting_key broken)" text
    exits 70 "$WEIR" status
    says "weir: queue broken: a key of weir's holds something else"
    exits 1 "$WEIR" doctor
    says "queue broken	FAIL"
}

@test "whatever is wrong with a queue, the others are shown" {
    for queue in healthy broken later odd; do exits 0 "$WEIR" enqueue t x -q $queue; done
    redis hset "$WEIR_NAMESPACE:{broken}:config" engine heap
    redis set "$(waiting_key odd)" text
    redis sadd "$WEIR_NAMESPACE:queues" nobodys
    for command in status audit 'queue ls' doctor; do
        run "$WEIR" $command
        [ "$status" != 0 ]
        says healthy
        says later
        says broken
        says 'queue odd'
    done
}
