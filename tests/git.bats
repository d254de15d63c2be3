#!/usr/bin/env bats
# Locks in a git repository, by the driver rlock-store-git. ask LINE...: the driver's last answer to
# these requests; git_with SCRIPT: a git in PATH that first runs that.
load helper

setup_file() {
    [[ -x ${RLOCK%/*}/rlock-store-git ]] || skip "rlock-external was not built: it takes Lua 5.1"
    type git >/dev/null 2>&1 || skip "no git here"
    clean_environment
}

teardown_file() { :; }

setup() {
    start_test
    git init -q --bare "$T/locks.git"
    mkdir "$T/tmp"
    export RLOCK_URL=git+file://$T/locks.git TMPDIR=$T/tmp
    # A request takes a dozen processes: so the waits here are long, and --lease is, too.
    export RLOCK_SERVER_WAIT=2m
}

teardown() {
    [[ -n $BATS_TEST_COMPLETED ]] || tail -n 20 "$T"/*.err "$T"/*.out 2>/dev/null || true
    end_processes
}

# no_folders: rlock has left nothing in the folder for temporary files.
no_folders() {
    [[ ! $(ls "$T/tmp") ]]
}

@test "waiters get the lock in the order in which they came; nothing is left behind" {
    stay a k --lease 1m
    for name in b c d; do
        queue "$name" k --lease 1m
    done
    ends_well a
    in_turn 100 b c d
    is_free k
    poll_until 60 no_folders
    [[ $(git -C "$T/locks.git" for-each-ref --format='%(refname)') == refs/rlock/rlock%3A%7Bk%7D= ]]
}

@test "git: status and history show runs, and force-release asks the holder" {
    hold a k --lease 20s
    run -0 --separate-stderr rlock status --json k
    jq -e ".[0].holders[0].pid == ${pid[a]}" <<<"$output"
    run -75 rlock run -n --lease 1m k -- true
    run -0 rlock force-release --yes k
    ends_with a 79 30
    run -0 rlock run --lease 1m k -- true
    run -0 --separate-stderr rlock history --json k
    jq -e '[.[].outcome] | contains(["exit 0"])' <<<"$output"
}

@test "H92 a holder is killed: a waiter has the lock one lease later, and never beside it" {
    at_work a k forever --lease 8s
    queued k bg b rlock run --lease 1m k -- "$RLOCK_TEST_TOOLS/worker" "$LOG" b 0.1
    kill_both a
    ends_with b 0 60
    no_overlap
}

@test "four contenders have the lock one at a time" {
    export RLOCK_LEASE=1m
    one_after_the_other 4
}

@test "KEYs that git refuses as the name of a ref are locked, and listed by their names" {
    long=$(printf 'x%.0s' {1..200})
    for key in a..b k.lock .k 'a~b^c:d' "$long"; do
        run -0 rlock run --lease 1m "$key" -- true
    done
    hold a a..b --lease 1m
    hold b "$long" --lease 1m
    run -0 rlock status --json
    jq -e --arg long "$long" '[.[].key] | sort == (["a..b", $long] | sort)' <<<"$output"
}

@test "a repository that is not there: exit 69, in the words of git" {
    run -69 rlock run -u "git+file://$T/nothing.git" --server-wait 0 k -- true
    [[ $output == *"does not appear to be a git repository"* ]]
    run -69 env PATH=/nothing "$RLOCK" run --server-wait 0 k -- true
    [[ $output == *"git is not installed"* ]]
    run -64 rlock run -u git+https://u:secret@h/x k -- true
    [[ $output == *"has a password"* && $output != *secret* ]]
}

@test "the lock of a git that was killed: 69, in the words of git; without it, the store is back" {
    rlock run --lease 1m k -- true
    left=$(find "$T/locks.git/refs/rlock" -type f).lock
    : >"$left"
    run -69 rlock run -n --lease 1m --connect-timeout 1m --server-wait 0 k -- true
    [[ $output == *"Unable to create "*"k"*".lock': File exists"* ]]
    bg a rlock run --lease 1m --connect-timeout 1m k -- true
    poll_until 60 contains "$T/a.err" 'File exists'
    rm "$left"
    ends_with a 0 120
}

@test "a run in a hook of another repository (GIT_DIR is set) leaves that repository as it is" {
    git init -q --bare "$T/other.git"
    GIT_DIR=$T/other.git run -0 rlock run --lease 1m k -- true
    [[ ! $(git -C "$T/other.git" for-each-ref) ]]
}

# ask LINE...: the driver's last answer to these requests.
ask() {
    printf '%s\n' "hello 1 $T/locks.git" "$@" |
        "${RLOCK%/*}/rlock-store-git" "$T/locks.git" 2>>"$T/git.err" | tail -n 1
}

# git_with SCRIPT: a git in PATH that first does that.
git_with() {
    mkdir -p "$T/bin"
    printf '#!/bin/sh\n%s\nexec %q "$@"\n' "$1" "$(type -P git)" >"$T/bin/git"
    chmod +x "$T/bin/git"
}

@test "half a record, or none for want of room here, leaves the store as it was" {
    version=$(ask 'put k - 2' a)
    version=${version#done }
    ref=$(git -C "$T/locks.git" for-each-ref)
    [[ $ref == "$version "*refs/rlock/k= ]]
    ask "put k $version 100" 'half a record'
    [[ $(git -C "$T/locks.git" for-each-ref) == "$ref" ]]
    for step in init cat-file hash-object mktree commit-tree; do
        git_with "[ \$1 != $step ] || { echo 'fatal: No space left on device' >&2; exit 128; }"
        [[ $(PATH=$T/bin:$PATH ask "put k $version 2" a 'get k') != failed* ]]
        [[ $(git -C "$T/locks.git" for-each-ref) == "$ref" ]]
    done
}

# A driver that cannot know whether a put was done must answer "unknown", not "failed".
@test "a push whose result was not reported may be done, and one that reports nothing is not" {
    git_with '[ "$1" != push ] && [ "$3" != push ] ||
        { printf "!\tx:y\t[remote failure] (remote failed to report status)\n"; exit 1; }'
    [[ $(PATH=$T/bin:$PATH ask 'put k - 2' a) == unknown* ]]
    git_with '[ "$1" != push ] && [ "$3" != push ] || exit 0'
    [[ $(PATH=$T/bin:$PATH ask 'put k - 2' a) == unknown* ]]
}

@test "a put that another one was quicker than is a conflict, whatever the server calls that" {
    local other version=
    other=$(ask 'put other - 2' a)
    version=$(ask 'put k - 2' a)
    cat >"$T/locks.git/hooks/update" <<END
#!/bin/sh
[ "\$2" != ${version#done } ] || git update-ref "\$1" ${other#done }
echo failed to lock >&2
exit 1
END
    chmod +x "$T/locks.git/hooks/update"
    [[ $(ask "put k ${version#done } 2" a) == conflict ]]
    [[ $(ask "put k ${other#done } 2" a) == 'failed '* ]]
    [[ $(git -C "$T/locks.git" rev-parse refs/rlock/k=) == "${other#done }" ]]
}

# Such as libcurl's, which sends a request again that a server has done without an answer.
@test "H141 a put that is refused for what it has done itself is done" {
    printf '%s\n' '#!/bin/sh' 'git update-ref "$1" "$3"' 'exit 1' >"$T/locks.git/hooks/update"
    chmod +x "$T/locks.git/hooks/update"
    [[ $(ask 'put k - 2' a) == "done $(git -C "$T/locks.git" rev-parse refs/rlock/k=)" ]]
}

# A request that is sent twice, as by libcurl: the first one has moved the ref, and git's own lock
# file of it is still there.
@test "H141 a put that finds the lock of itself is done" {
    local version
    version=$(ask 'put k - 2' a)
    cat >"$T/locks.git/hooks/update" <<'END'
#!/bin/sh
git update-ref "$1" "$3"
: >"$1.lock"
END
    chmod +x "$T/locks.git/hooks/update"
    [[ $(ask "put k ${version#done } 2" a) == "done $(git -C "$T/locks.git" rev-parse refs/rlock/k=)" ]]
}

# The first driver answers when its reader, a pipe, has gone; the second one is told to end.
@test "a driver that is told to end, or whose reader has gone, leaves nothing behind" {
    local driver=${RLOCK%/*}/rlock-store-git
    (poll_until 20 test -e "$T/gone" && printf '%s\n' 'hello 1 x' 'get k') |
        "$driver" "$T/locks.git" 2>>"$T/git.err" | : >"$T/gone"
    poll_until 20 no_folders
    mkfifo "$T/in"
    "$driver" "$T/locks.git" <>"$T/in" 3>&- &
    poll_until 20 fails no_folders
    kill -TERM $!
    poll_until 20 no_folders
}

@test "what the user has set for pushes does not count: hooks, signatures, options, submodules" {
    export HOME=$T/home
    mkdir -p "$HOME/hooks"
    printf '#!/bin/sh\nexit 1\n' >"$HOME/hooks/pre-push"
    chmod +x "$HOME/hooks/pre-push"
    cat >"$HOME/.gitconfig" <<END
[core]
    hooksPath = $HOME/hooks
[push]
    gpgSign = true
    pushOption = ci.skip
    recurseSubmodules = only
    followTags = true
END
    export GIT_CONFIG_NOSYSTEM=1
    stay a k --lease 1m
    HOME=/nonexistent run -75 rlock run -n --lease 1m k -- true
    for variable in GIT_NAMESPACE=x GIT_QUARANTINE_PATH=/x GIT_DEFAULT_HASH=sha256; do
        run -75 env "$variable" "$RLOCK" run -n --lease 1m k -- true
    done
    ends_well a
    run -0 env GIT_QUARANTINE_PATH=/x "$RLOCK" run -n --lease 1m k -- true
}

@test "docs/ci.md: two CI pipelines deploy one after the other with no server at all" {
    "$TESTS/page_blocks" ci.md 'A lock across CI pipelines with no server at all' >"$T/recipe"
    # In place of the page's repository, that of the test.
    sed -i "s|git+ssh://[^ ]*|$RLOCK_URL|" "$T/recipe"
    printf '#!/bin/sh\necho "begin $1" >>"%s"; sleep 0.5; echo end >>"%s"\n' "$LOG" "$LOG" \
        >"$T/deploy.sh"
    chmod +x "$T/deploy.sh"
    mkdir "$T/bin"
    ln -s "$RLOCK" "$T/bin/rlock"
    for name in a b; do
        bg "$name" env -C "$T" PATH="$T/bin:$PATH" sh -e "$T/recipe"
    done
    all_end 0 200 a b
    [[ $(xargs <"$LOG") == "begin production end begin production end" ]]
}
