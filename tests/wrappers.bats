# packaging/: what wraps rlock for CI services and systemd. Each is linted, and its shell runs here
# with what the service would put into its environment. lint SHELL FILE; step_works SERVICE PREFIX:
# PREFIX stands before a command of a script there.

load helper

PACKAGING=$TESTS/../packaging

setup() {
    start_test
    # A release: the program under test, under the name of a static file.
    local arch=amd64
    [[ $(uname -m) != aarch64 ]] || arch=arm64
    mkdir "$T/release" "$T/work"
    FILE=$T/release/rlock-1.2.3-linux-$arch
    ln -s "$RLOCK" "$FILE"
    SUM=$(sha256sum <"$FILE" | cut -d ' ' -f 1)
    FROM=file://$T/release
    cd "$T/work" || return
}

# shell_of FILE: prints the shell that is in it.
shell_of() {
    python3 - "$1" <<'END'
import re, sys, yaml
text = open(sys.argv[1], encoding="utf-8").read()
if sys.argv[1].endswith(".groovy"):
    print(re.search(r"'''(.*?)'''", text, re.S)[1])
else:
    file = yaml.safe_load(text)
    print(file["runs"]["steps"][0]["run"] if "runs" in file else file[".rlock"]["before_script"][0])
END
}

# lint SHELL FILE: with the words that are meant to be split.
lint() {
    type shellcheck >/dev/null 2>&1 || skip 'shellcheck is not here'
    shell_of "$2" | shellcheck -s "$1" -e SC2086,SC2239 -
}

# on_github KEY SCRIPT [OPTIONS [SHA256]]
on_github() {
    shell_of "$PACKAGING/github-action/action.yml" >"$T/step"
    env RLOCK_STEP_KEY="$1" RLOCK_STEP_SCRIPT="$2" RLOCK_STEP_OPTIONS="${3-}" \
        RLOCK_STEP_VERSION=1.2.3 RLOCK_STEP_SHA256="${4-$SUM}" RLOCK_STEP_FROM="$FROM" \
        bash --noprofile --norc -eo pipefail "$T/step"
}

on_gitlab() {
    {
        shell_of "$PACKAGING/gitlab/rlock.gitlab-ci.yml"
        printf '%s\n' "$2"
    } >"$T/step"
    env RLOCK_GROUP="$1" RLOCK_OPTIONS="${3-}" RLOCK_VERSION=1.2.3 RLOCK_SHA256="${4-$SUM}" \
        RLOCK_FROM="$FROM" bash -eo pipefail "$T/step"
}

on_jenkins() {
    shell_of "$PACKAGING/jenkins/vars/underLock.groovy" >"$T/step"
    env STEP_KEY="$1" STEP_SCRIPT="$2" STEP_OPTIONS="${3-}" STEP_VERSION=1.2.3 \
        STEP_SHA256="${4-$SUM}" STEP_FROM="$FROM" sh "$T/step"
}

# step_works SERVICE PREFIX: PREFIX stands before a command of a script there.
step_works() {
    : >two
    : >files
    run -0 --separate-stderr "on_$1" a/key \
        "$2 sh -c 'echo \"\$RLOCK_KEY\"; [ \$RLOCK_FENCE -gt 0 ]'" '--label *'
    [[ $output == a/key ]]
    run -64 --separate-stderr "on_$1" -q "$2 touch '$T/ran'"
    [[ $stderr == "rlock: the "*" begins with '-': -q" ]]
    run -7 "on_$1" k "$2 sh -c 'exit 7'"
    hold a k
    run -75 "on_$1" k "$2 touch '$T/ran'" -n
    run -75 "on_$1" k "$2 touch '$T/ran'" '-w 3s'
    # Another file than the one that is meant is not executed.
    rm -rf .rlock
    run "on_$1" other "$2 touch '$T/ran'" '' "${SUM//[0-7]/8}"
    [[ $status != 0 && ! -e $T/ran ]]
    rm -rf .rlock "$FILE"
    run "on_$1" other "$2 touch '$T/ran'"
    [[ $status != 0 && ! -e $T/ran ]]
}

@test "GitHub: the action hands over each of its inputs, and its shell is sound" {
    lint bash "$PACKAGING/github-action/action.yml"
    python3 - "$PACKAGING/github-action/action.yml" <<'END'
import re, sys, yaml
action = yaml.safe_load(open(sys.argv[1]))
step, = action["runs"]["steps"]
assert action["runs"]["using"] == "composite" and step["shell"] == "bash" and action["description"]
given = {re.fullmatch(r"\$\{\{ inputs\.(\w+) \}\}", value)[1] for value in step["env"].values()}
assert given == set(action["inputs"]), given
assert all(one.get("required") or "default" in one for one in action["inputs"].values())
assert all(name in step["run"] for name in step["env"]) and "${{" not in step["run"]
END
}

@test "GitHub: a step under a lock" { step_works github ''; }

@test "GitHub: a script of several lines stops at the first that fails" {
    run -1 on_github k $'echo one\nfalse | true\necho two'
    [[ $output == one ]]
}

@test "GitLab: a job under a lock" {
    lint bash "$PACKAGING/gitlab/rlock.gitlab-ci.yml"
    step_works gitlab under_lock
}

@test "Jenkins: a step under a lock" {
    lint sh "$PACKAGING/jenkins/vars/underLock.groovy"
    step_works jenkins ''
}

@test "Jenkins: the step is Groovy" {
    type groovyc >/dev/null 2>&1 || skip 'groovyc is not here'
    groovyc -d "$T" "$PACKAGING/jenkins/vars/underLock.groovy"
}

# drop_in UNIT EXAMPLE: gives it the drop-in that is an example beside that unit.
drop_in() {
    mkdir "$T/units/$1.d"
    sed "s|/usr/bin/rlock|$RLOCK|" "$PACKAGING/systemd/$2.example.conf" >"$T/units/$1.d/example.conf"
}

@test "systemd: the units are what it takes, and tmpfiles.d too" {
    type systemd-analyze systemd-tmpfiles >/dev/null 2>&1 || skip 'systemd is not here'
    mkdir "$T/units"
    for unit in rlock@.service rlock-serve.service; do
        sed "s|/usr/bin/rlock|$RLOCK|" "$PACKAGING/systemd/$unit" >"$T/units/$unit"
    done
    cp "$T/units/rlock@.service" "$T/units/rlock@backup.service"
    drop_in rlock-serve.service rlock-serve.service
    printf '[Service]\nType=notify\nExecStart=/bin/sh\n' >"$T/units/NAME.service"
    drop_in NAME.service rlock@.service
    sed -i "s|/usr/sbin/NAME|/bin/sh|" "$T/units/NAME.service.d/example.conf"
    run -0 systemd-analyze verify --man=no "$T/units/rlock@backup.service" \
        "$T/units/rlock-serve.service" "$T/units/NAME.service"
    [[ $output != *"$T"* ]]
    systemd-tmpfiles --create --dry-run "$PACKAGING/systemd/rlock.conf" 2>/dev/null ||
        systemd-tmpfiles --create --root="$T" "$PACKAGING/systemd/rlock.conf"
}

# Starts ExecStart as systemd would, with the variables of Environment.
@test "systemd: the template runs its script under the lock of its name" {
    cat >"$T/start" <<END
set -f
instance=backup
$(sed -n 's/^Environment=\(.*\)/\1/p' "$PACKAGING/systemd/rlock@.service" |
        sed "s|%i|\$instance|g; s|/etc/rlock|$T|; s/ \\([A-Z]*=\\)/; \\1/g")
$(sed -n 's/^ExecStart=//p' "$PACKAGING/systemd/rlock@.service" |
        sed "s|%i|\$instance|g; s|/usr/bin/rlock|exec '$RLOCK'|")
END
    printf '#!/bin/sh\necho "$RLOCK_KEY"\n' >"$T/backup.sh"
    chmod +x "$T/backup.sh"
    run -0 sh "$T/start"
    [[ $output == backup ]]
    hold a backup
    run -75 sh "$T/start"
}
