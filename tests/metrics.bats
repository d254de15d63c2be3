# rlock metrics: Prometheus text, and the file of the textfile collector.

load helper

# metrics [ARGUMENT...]: well-formed text in $output. promtool.bats checks it with promtool.
metrics() {
    quiet 0 metrics "$@"
    well_formed <<<"$output"
}

# Each family has its HELP and TYPE once, right before its samples, and none is there twice.
well_formed() {
    python3 -c '
import re, sys
text = sys.stdin.read()
assert text.endswith("\n# EOF\n"), "no end"
name, seen, samples = None, set(), set()
lines = text.splitlines()[:-1]
while lines:
    name = re.fullmatch(r"# HELP (rlock_[a-z_]+) \S.*\.", lines.pop(0))[1]
    kind = re.fullmatch(rf"# TYPE {name} (gauge|counter)", lines.pop(0))[1]
    assert name not in seen and (kind == "counter") == name.endswith("_total"), name
    seen.add(name)
    assert lines and not lines[0].startswith("#"), name
    while lines and not lines[0].startswith("#"):
        line = lines.pop(0)
        string = r"\"(?:[^\"\\\n]|\\[\\\"n])*\""
        sample = re.fullmatch(rf"({name}(?:{{key={string}(?:,outcome={string})?}})?) \d+(?:\.\d+)?",
                              line)
        assert sample and sample[1] not in samples, line
        samples.add(sample[1])
'
}

# has LINE...: lines of $output.
has() {
    local line
    for line; do
        grep -qxF -- "$line" <<<"$output" || { printf 'no %s in\n%s\n' "$line" "$output" && false; }
    done
}

@test "the gauges of locks, with their keys as labels" {
    metrics
    has 'rlock_up 1'
    hold a 'a\b'
    hold b sem --limit 3
    hold c '"c'
    rlock run --at-least 1h --limit 3 sem -- true
    XDG_STATE_HOME=$T/state rlock reserve lab 1h -m 'load test'
    queue w '"c'
    metrics
    has 'rlock_reserved{key="lab"} 1' 'rlock_reserved{key="sem"} 0'
    has 'rlock_holders{key="a\\b"} 1' 'rlock_waiters{key="\"c"} 1' \
        'rlock_kept{key="a\\b"} 0' 'rlock_holders{key="sem"} 2' 'rlock_kept{key="sem"} 1' \
        'rlock_limit{key="sem"} 3' 'rlock_waiters{key="sem"} 0' \
        'rlock_wait_seconds{key="sem"} 0.000'
    grep -qE '^rlock_held_seconds\{key="sem"\} [0-9]+\.[0-9]{3}$' <<<"$output"
    # A KEY that is free is there, and what was not asked for is not.
    metrics sem free 'z*'
    has 'rlock_holders{key="free"} 0' 'rlock_held_seconds{key="free"} 0.000'
    [[ $output != *'a\\b'* ]]
}

@test "what has happened to locks, as counters, and when runs have ended" {
    before=$(date +%s)
    rlock run k -- true
    run -1 rlock run k -- false
    run -124 rlock run --at-most 100ms k -- sleep 100
    hold a k
    run -75 rlock run -w 3s k -- true
    queue w k
    kill "${pid[a]}"
    finish w
    metrics
    has 'rlock_acquired_total{key="k"} 5' 'rlock_refused_total{key="k"} 1' \
        'rlock_timed_out_total{key="k"} 1' 'rlock_lost_total{key="k"} 0' \
        'rlock_expired_total{key="k"} 0' 'rlock_revoked_total{key="k"} 0' \
        'rlock_holders{key="k"} 0'
    grep -qE '^rlock_waited_seconds_total\{key="k"\} [0-9]+\.[0-9]*[1-9]' <<<"$output"
    for outcome in success failure timed_out; do
        sample="rlock_last_end_timestamp_seconds\{key=\"k\",outcome=\"$outcome\"\} ([0-9]+)\."
        [[ $output =~ $sample ]]
        ((BASH_REMATCH[1] >= before && BASH_REMATCH[1] <= $(date +%s)))
    done
    [[ $output != *'outcome="lost"'* ]]
    # Each metric is in the manual, and the other way round.
    hold b semaphore --limit 2
    metrics
    diff <(sed -n 's/^# TYPE \([^ ]*\) .*/\1/p' <<<"$output" | sort) \
        <(sed -n 's/^\.It Li \(rlock_[a-z_]*\).*/\1/p' "$TESTS/../man/rlock-metrics.1" | sort)
}

@test "--output replaces a file at once: mode and owner are the old ones, or the umask's" {
    hold a k
    umask 027
    run -0 --separate-stderr rlock metrics --output "$T/rlock.prom"
    [[ ! $output && ! $stderr && $(stat -c %a "$T/rlock.prom") == 640 ]]
    well_formed <"$T/rlock.prom"
    chmod 604 "$T/rlock.prom"
    ((EUID != 0)) || chown nobody:daemon "$T/rlock.prom"
    local owner
    owner=$(stat -c %U:%G "$T/rlock.prom")
    # A reader that has it open continues to read the old one.
    exec 8<"$T/rlock.prom"
    mkdir "$T/elsewhere"
    ln -s "$T/rlock.prom" "$T/elsewhere/link"
    rlock metrics --output "$T/elsewhere/link" 'z*'
    grep -q 'key="k"' <&8
    exec 8<&-
    [[ -L $T/elsewhere/link ]]
    run -1 grep key= "$T/rlock.prom"
    [[ $(stat -c '%a %U:%G' "$T/rlock.prom") == "604 $owner" ]]
    cd "$T/elsewhere"
    rlock metrics --output here
    [[ -s here && $(ls -A) == "here"$'\n'"link" ]]
}

@test "what cannot be written is 71, and nothing is touched or left behind" {
    echo old >"$T/file"
    mkfifo "$T/fifo"
    # A link to nowhere: a file in its place would not be where the link says.
    ln -s later "$T/link"
    for path in "$T/none/file" "$T/fifo" "$T" /dev/null "$T/link"; do
        run -71 --separate-stderr rlock metrics --output "$path"
        [[ ! $output && ${#stderr_lines[@]} == 1 && $stderr == "rlock: metrics: "*"$path"* ]]
    done
    [[ -p $T/fifo && -c /dev/null && -L $T/link && ! -e $T/later ]]
    # As on a full disk.
    mkdir "$T/full"
    echo old >"$T/full/file"
    for ignored in '' "trap '' XFSZ;"; do
        run -71 bash -c "ulimit -f 0; $ignored exec rlock metrics --output '$T/full/file'" 3>&-
        [[ $(<"$T/full/file") == old && $(ls -A "$T/full") == file ]]
    done
    run -64 rlock metrics --output ''
    run -64 rlock metrics 'a b'
    run -64 rlock metrics k -- true
}

@test "a store that is away: rlock_up 0, in the file as well, and 69" {
    run -69 --separate-stderr rlock metrics -u "unix://$T/none" --server-wait 0
    well_formed <<<"$output"
    [[ $output == *$'\nrlock_up 0\n# EOF' && $stderr == "rlock: metrics: cannot reach "* ]]
    rlock metrics --output "$T/file"
    run -69 rlock metrics -u "unix://$T/none" --server-wait 0 --output "$T/file"
    grep -qx 'rlock_up 0' "$T/file"
    well_formed <"$T/file"
}

@test "a KEY that is not a lock is reported; the metrics of the others are there" {
    rlock latch set gate 1
    hold a k
    run -78 --separate-stderr rlock metrics gate k
    [[ $stderr == "rlock: metrics: gate: "* && ${#stderr_lines[@]} == 1 ]]
    has 'rlock_up 1' 'rlock_holders{key="k"} 1'
}
