# rlock status: rows, all of a lock, JSON, globs, -q, --watch.

load helper

no_controls() { # in $output, but for the ends of lines
    [[ $(tr -d '\n' <<<"$output" | tr -dc '\000-\037\177' | wc -c) == 0 ]]
}

@test "nothing is locked" {
    run -0 --separate-stderr rlock status
    [[ $output == "" ]]
    run -0 rlock status --json
    json '. == []'
    run -0 rlock status --json k
    json 'length == 1 and .[0].key == "k" and .[0].holders == [] and .[0].waiters == []'
}

@test "--json has the names and types of the manual" {
    hold a deploy --label "the label" --lease 40s
    queue w1 deploy --label second
    queue w2 deploy
    run -0 --separate-stderr rlock status --json deploy
    json 'length == 1 and (.[0] | .key == "deploy" and .mode == "exclusive" and .limit == null and
          (.fence | type) == "number")'
    json '.[0] | .fence == .holders[0].fence and (.holders | length) == 1'
    json '.[0].holders[0] | (.owner | test("^[0-9a-f-]{36}$")) and .mode == "exclusive" and
          .count == 1 and .slot == null and .command == "sh" and .label == "the label" and
          .pid == '"${pid[a]}"' and .host == "'"$(hostname)"'" and .user == "'"$(id -un)"'" and
          (.lease_left_ms > 20000 and .lease_left_ms <= 40000)'
    json '.[0].holders[0].since | test("^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}\\.[0-9]{3}Z$")'
    json '(.[0].holders[0].since | sub("\\.[0-9]*Z"; "Z") | fromdate) - '"$(date +%s)"' |
          . > -60 and . < 60'
    json '.[0].waiters | map(.position) == [1, 2] and map(.label) == ["second", null] and
          all(.mode == "exclusive" and .command == "sh" and (.owner | length) == 36 and
              (.since | test("Z$")))'
    json '.[0].waiters | map(.pid) == ['"${pid[w1]}, ${pid[w2]}"']'
}

@test "a row a lock: key, mode, holder, age, lease left, waiters" {
    hold a alpha
    hold b beta
    queue w beta
    run -0 rlock status
    [[ $output == *alpha* && $output == *beta* && $output == *exclusive* && $output == *"$(hostname)"* ]]
    [[ $(grep -c alpha <<<"$output") == 1 ]]
    [[ $(grep beta <<<"$output") =~ [0-9]+m?s ]]
    run -0 rlock status --json
    json 'map(.key) | sort == ["alpha", "beta"]'
}

@test "with one key, or --long, all is told" {
    local owner
    hold a alpha --label "some label"
    queue w alpha --label "other label"
    owner=$(rlock status --json alpha | jq -r '.[0].holders[0].owner')
    run -0 rlock status alpha
    [[ $output == *"$owner"* && $output == *"some label"* && $output == *"other label"* ]]
    [[ $output == *"${pid[a]}"* && $output == *"${pid[w]}"* ]]
    run -0 rlock status --long
    [[ $output == *"$owner"* && $output == *"other label"* ]]
    run -0 rlock status
    [[ $output != *"$owner"* ]]
}

@test "globs, and keys that look like some" {
    hold a deploy-a
    hold b deploy-b
    hold c nightly
    run -0 rlock status --json 'deploy-*'
    json 'map(.key) | sort == ["deploy-a", "deploy-b"]'
    run -0 rlock status --json 'deploy-[ac]' 'night?y'
    json 'map(.key) | sort == ["deploy-a", "nightly"]'
    run -0 rlock status --json 'nothing*'
    json '. == []'
    run -0 rlock status --json nightly free 'deploy-a'
    json 'map(.key) | sort == ["deploy-a", "free", "nightly"]'
    hold d 'a*b'
    hold e 'axb'
    hold f 'a\b'
    run -0 rlock status --json 'a[*]b'
    json 'map(.key) == ["a*b"]'
    run -75 rlock status -q 'a\*b'
    run -0 rlock status --json 'a\*b' 'a\\b'
    json 'map(.key) == ["a*b", "a\\b"]'
}

@test "another prefix is another world, also to globs" {
    as_default_user
    hold a k --prefix one
    hold b k --prefix two
    run -0 rlock status --json --prefix one
    json 'length == 1 and .[0].holders[0].pid == '"${pid[a]}"
    run -0 rlock status --json --prefix 'on*'
    json '. == []'
    run -0 rlock status --json
    json '. == []'
}

@test "-q: 0 when all are free, 75 when one is held, nothing printed" {
    hold a k
    run -75 --separate-stderr rlock status -q k
    [[ $output == "" && $stderr == "" ]]
    run -75 rlock status -q free k
    run -0 --separate-stderr rlock status -q free other
    [[ $output == "" && $stderr == "" ]]
    run -0 rlock status k
    kill "${pid[a]}"
    finish a
    run -0 rlock status -q k
}

@test "a dead holder's lock is free when its lease is over" {
    local agent
    hold a k --lease 2s
    agent=$(agent_of "${pid[a]}")
    kill -STOP "$agent" "${pid[a]}"
    run -75 rlock status -q k
    kill -KILL "$agent" "${pid[a]}"
    poll_until 5 is_free k
    run -0 rlock status --json k
    json '.[0].holders == []'
}

@test "control characters of others are shown escaped" {
    hold a k --label $'evil\e[31m\nline\x07\x9b'
    run -0 rlock status k
    [[ $output == *evil* && $output == *line* ]]
    no_controls
    run -75 rlock run -n k -- true
    no_controls
    [[ ${#lines[@]} == 1 ]]
    run -0 rlock status --json k
    json '.[0].holders[0].label | startswith("evil\u001b[31m\nline\u0007")'
}

@test "labels in other scripts, and very long ones" {
    local long
    printf -v long '%0800d' 0
    hold a k --label "größe 漢字 \"quoted\" \\ back"
    run -0 rlock status --json k
    json '.[0].holders[0].label == "größe 漢字 \"quoted\" \\ back"'
    hold b l --label "$long"
    run -0 rlock status --json l
    json '.[0].holders[0].label | startswith("000000000")'
}

@test "foreign keys under the prefix do not disturb" {
    redis set 'rlock:{string}' x
    redis set 'rlock:other' x
    redis hset 'rlock:{hash}' a b
    hold a k
    run -0 rlock status
    [[ $output == *k* ]]
    run rlock status --json
    json 'map(.key) | index("k") != null'
}

@test "many locks" {
    local i
    redis eval "for i = 1, 500 do redis.call('set', 'unrelated' .. i, 1) end" 0
    for i in {1..12}; do
        bg "h$i" rlock run "many-$i" -- sleep 1000
    done
    poll_until 20 eval '[[ $(rlock status --json "many-*" | jq length) == 12 ]]'
    run -0 rlock status
    [[ $(grep -c 'many-' <<<"$output") == 12 ]]
}

@test "--watch draws again until it is interrupted" {
    bg watch rlock status --watch 200ms k
    poll_until 10 contains "$T/watch.out" k
    hold a k --label appears-now
    poll_until 10 contains "$T/watch.out" appears-now
    kill -INT "${pid[watch]}"
    finish watch 5
    [[ $status == 130 || $status == 0 ]]
}

@test "--color" {
    hold a k
    run -0 rlock status --color never k
    [[ $output != *$'\e['* ]]
    run -0 rlock status k
    [[ $output != *$'\e['* ]]
    run -0 rlock status --color always k
    NO_COLOR=1 run -0 rlock status --color always k
}

@test "standard output that is closed or full is an error" {
    hold a k
    [[ -c /dev/full ]] || skip "no /dev/full here"
    run rlock status k >/dev/null
    run bash -c '"$RLOCK" status k >/dev/full'
    [[ $status != 0 ]]
}
