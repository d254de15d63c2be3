# docs/fleet.md: settings arrive on a host as the examples write them, and a fleet moves from one
# store to another without two commands at once. as_host FILE: does the steps of that example in
# $T/host; stubs: for programs that reach other hosts or need root.

load helper

teardown() {
    kill_redis "$T/new-store"
    end_processes
    redis flushall >/dev/null
}

EXAMPLES=$TESTS/../examples

# as_host FILE: does the steps of the example in $T/host, with the rlock under test.
as_host() {
    python3 -c 'import yaml' 2>/dev/null || skip "no python3-yaml here"
    mkdir -p "$T/shell" "$T/host/etc" "$T/host/usr/local/bin"
    python3 -B "$TESTS/examples_shell.py" "$EXAMPLES/$1" "$T/shell"
    for file in "$T"/shell/*; do
        command -v shellcheck >/dev/null && shellcheck -s sh -S warning "$file"
        sed -i "s|/etc/|$T/host/etc/|g; s|/usr/local/|$T/host/usr/local/|g
            s|rediss://rlock@locks.example.com|$RLOCK_URL|" "$file"
        ROOT=$T/host PATH=$T/bin:$PATH bash -e "$file" 3>&-
    done
    [[ $(ls "$T/host/etc") == *rlock.conf.d*rlock.password* ]]
    cmp "$T/host/usr/local/bin/rlock" "$RLOCK"
    [[ $(cat "$T/host/doctor") == *$T/host/etc/rlock.conf.d/10-fleet.conf* ]]
    [[ $(stat -c %A "$T/host/etc/rlock.password") == -rw-r----- ]]
}

# Stubs of the programs that reach other hosts or need root.
stubs() {
    mkdir "$T/bin"
    cat >"$T/bin/curl" <<'END2'
#!/bin/bash
while [[ $1 != -o ]]; do shift; done
if [[ $2 == */bin/rlock ]]; then cat "$RLOCK" >"$2"; else echo secret >"$2"; fi
END2
    cat >"$T/bin/sha256sum" <<'END2'
#!/bin/bash
grep -qE '^[0-9a-f]{64}  /.*rlock$'
END2
    cat >"$T/bin/rlock" <<'END2'
#!/bin/bash
echo "$ROOT"/etc/rlock.conf.d/*.conf >"$ROOT/doctor"
cat "$ROOT"/etc/rlock.conf.d/*.conf >"$ROOT/settings"
unset RLOCK_URL RLOCK_PASSWORD
RLOCK_CONFIG=$ROOT/settings exec "$RLOCK" "$@"
END2
    printf '#!/bin/sh\n' >"$T/bin/chgrp"
    chmod +x "$T/bin/"*
}

# One of the example's steps is rlock doctor: a finding that is more than a warning ends the steps.
@test "Ansible's tasks leave a host that passes the doctor" {
    stubs
    as_host ansible.yml
    if command -v ansible-playbook >/dev/null; then
        ansible-playbook --syntax-check -i localhost, "$EXAMPLES/ansible.yml"
    fi
}

# Here, too, rlock doctor is a step of the example.
@test "cloud-init leaves a host that passes the doctor" {
    stubs
    as_host cloud-init.yaml
}

@test "cloud-init: a file with another checksum is not installed, and the password is not fetched" {
    stubs
    printf '#!/bin/sh\nexit 1\n' >"$T/bin/sha256sum"
    run as_host cloud-init.yaml
    [[ -e $T/host/usr/local/bin/rlock && ! -x $T/host/usr/local/bin/rlock ]]
    [[ ! -e $T/host/etc/rlock.password ]]
}

# job HOST: runs a job with the settings that the host has at that time. Two at once leave a line
# in $T/overlaps.
job() {
    env -u RLOCK_URL rlock run --config "$T/host-$1" work -c "
        mkdir $T/busy || echo two at once >>$T/overlaps
        sleep 0.2
        rmdir $T/busy
        echo \"$1 \$RLOCK_FENCE\" >>$T/done"
}

# host NAME: starts jobs until $T/enough exists; all of them must succeed.
host() {
    local jobs=()
    until [[ -e $T/enough ]]; do
        job "$1" 2>/dev/null 3>&- &
        jobs+=($!)
        sleep 0.3
    done
    local one
    for one in "${jobs[@]}"; do
        wait "$one" || echo "$1: $?" >>"$T/failed"
    done
}

@test "a fleet moves to another store: never two commands at once, and no run is lost" {
    command -v jq >/dev/null || skip "no jq here"
    local one hosts=()
    start_redis "$T/new-store" --port 0 --unixsocket "$T/redis"
    echo "url = $RLOCK_URL" >"$T/old"
    echo "url = unix://$T/redis" >"$T/new"
    for one in a b c; do
        cp "$T/old" "$T/host-$one"
        host $one 3>&- &
        hosts+=($!)
    done
    poll_until 20 test -s "$T/done"
    # Each host gets the new settings at another time; some of their commands wait already.
    cat >"$T/switch" <<'END2'
#!/bin/sh
for one in a b c; do
    sleep 1 # some jobs of each host
    cp "$T/new" "$T/next" && mv "$T/next" "$T/host-$one"
done
END2
    chmod +x "$T/switch"
    mkdir "$T/bin"
    ln -s "$RLOCK" "$T/bin/rlock"
    env -u RLOCK_URL MOVE_SECONDS=0.1 PATH="$T/bin:$PATH" sh "$EXAMPLES/move-store" "$T/old" "$T/new" \
        "$T/switch" >"$T/move.out" 3>&- &
    local move=$!
    poll_until 30 grep -q waiters "$T/move.out"
    wait $move
    before=$(wc -l <"$T/done")
    poll_until 30 eval '(($(wc -l <"$T/done") > before + 3))'
    touch "$T/enough"
    wait "${hosts[@]}"
    [[ ! -e $T/overlaps && ! -e $T/failed ]]
    # Tokens have increased over both stores.
    awk '{ print $2 }' "$T/done" | sort -nC
    # A host that was forgotten waits at the old store.
    cp "$T/old" "$T/host-a"
    run env -u RLOCK_URL rlock run -w 4s --config "$T/host-a" work -- true
    [[ $status == 75 && $output == *'locks have moved to another store'* ]]
}
