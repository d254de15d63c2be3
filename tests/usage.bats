# Command lines that are refused before a connection (64); stores that cannot be reached or used.
# misuse COMMAND: it is refused with 64.

load helper

# No server is there: a connection would end in 69, not 64.
setup_file() {
    start_file
    export RLOCK_URL=unix:///nowhere/at/all
}

misuse() { # the command line is refused with 64 and one line, at most one hint after it
    run -64 --separate-stderr rlock "$@"
    [[ $output == "" && ${stderr_lines[0]} == rlock:* && ${#stderr_lines[@]} -le 2 ]]
    [[ ${#stderr_lines[@]} == 1 || ${stderr_lines[1]} == *hint:* || ${stderr_lines[1]} == *help* ]]
}

@test "a command line without arguments, or with an unknown command or option: exit 64" {
    run -64 rlock
    misuse frobnicate
    misuse --frobnicate
    misuse run
    misuse run --frobnicate k -- true
    misuse run k
    misuse run k true
    misuse run k --
    misuse run -- true
    misuse run -c 'true'
    misuse run k -c
    misuse run k -c true -- true
    [[ $(rlock frobnicate 2>&1) == "rlock: 'frobnicate': unknown command"* ]]
    misuse --url redis://h run -n k -- true
    [[ $stderr == "rlock: --url: options come after 'run'"$'\n'"hint: rlock run --url redis://h -n k -- true" ]]
    misuse version
    [[ $stderr == *"did you mean '--version'?" ]]
    [[ $(rlock --frobnicate=1 2>&1) == "rlock: --frobnicate: unknown option"* ]]
}

@test "another dash in place of --: exit 64, and a hint with the line as it was meant" {
    for dash in — – –- ――; do
        misuse run -n k "$dash" echo 'a b'
        [[ ${stderr_lines[0]} == "rlock: run: no COMMAND: '$dash' is another dash than --" ]]
        [[ ${stderr_lines[1]} == "hint: rlock run -n k -- echo 'a b'" ]]
    done
    misuse run k — echo 'a\b'
    [[ ${stderr_lines[1]} == 'hint: rlock run [OPTIONS] KEY -- COMMAND' ]] # messages show \ escaped
    misuse run k ——x
    misuse run k — sh -c 'echo a'
    [[ $stderr == *"'—' is another dash than --"$'\n'"hint: rlock run k -- sh -c 'echo a'" ]]
    export RLOCK_URL=unix://$REDIS_SOCK
    says 0 "^rlock: run: '–n' begins with another dash than that of an option$" run –n k -- true
    says 0 "^rlock: status: '—json' begins with another dash than that of an option$" status k —json
    says 0 '^rlock: run: “k” begins with a quote that no shell removes$' run $'\xe2\x80\x9ck\xe2\x80\x9d' -- true
    prints_nothing 0 run -q –n k -- true
    run --separate-stderr rlock run —url=redis://u:s3cret@h k -- true
    [[ ${stderr_lines[0]} == *"'—url=redis://u:***"*"@h' begins with another dash"* ]]
    says 64 "^rlock: run: unknown option -–$" run -–no-wait k -- true
}

@test "a KEY twice is that KEY, or 64 where there can be only one" {
    local words owner
    for words in acquire renew release resume 'extend -q' 'pause -m x' 'reserve -m x' limit \
        'latch delete' 'latch wait' 'latch count-down' 'latch status' 'history --plot'; do
        misuse $words k k
    done
    export RLOCK_URL=unix://$REDIS_SOCK
    owner=$(rlock acquire k)
    [[ $(rlock status --json k k | jq length) == 1 ]]
    [[ $(rlock metrics k k | grep -c '^rlock_holders{') == 1 ]]
    prints 2 'RLOCK CRITICAL - k: *locks=1 *' check --held 0 k k
    run -0 rlock force-release --yes k k
    run -1 rlock release --owner "$owner" k
    prints 0 k run k k -- sh -c 'echo $RLOCK_KEY'
    [[ $(rlock history --json k k | jq length) == 2 ]]
}

# lacks_of_page TITLE: what the page says that the stores of that row lack, a line each.
lacks_of_page() {
    sed -n '/^\.Sh WHAT A STORE LACKS/,/^\.El/p' "$TESTS/../man/rlock-stores.7" |
        awk -v title=".It $1" '/^\./ { on = $0 == title; next } on' |
        sed 's/\\-/-/g; s/[,.]$//' | sort
}

# lacks_of URL...: what rlock says that it lacks. No server is there.
lacks_of() {
    local words urls=()
    for words; do urls+=(--url "$words"); done
    set -f
    while read -r words; do
        # shellcheck disable=SC2086 # a list of words
        rlock ${words%% *} "${urls[@]}" --server-wait 0 ${words#* } 2>&1 || true
    done <<'END' | sed -nE 's/^rlock: .*(:\/\/|exec:|quorum) has no //p' | sort -u
run --read k -- true
run --limit 2 k -- true
run a b -- true
run --at-least 1s k -- true
run --replicas 1 k -- true
run --grace k -- true
run --latest k -- true
run --priority 1 k -- true
run --replace k -- true
run --mirror string:x k -- true
run --unless-done 1h a b -- true
run --any a b -- true
acquire k
init -q
init --minimum-version 1.0.0
force-release --yes k
latch set l 1
limit k 1
pause -m x k 1m
pause -m x k* 1m
END
}

@test "rlock-stores(7) says what each store lacks, and all of that is refused: exit 64" {
    local title url
    [[ $(lacks_of redis://127.0.0.1:1) == '' ]]
    while read -r url title; do
        # shellcheck disable=SC2086 # of a quorum: a list
        diff <(lacks_of_page "$title") <(lacks_of ${url//,/ })
    done <<'END'
cluster://127.0.0.1:1 Li cluster://
etcd://127.0.0.1:1 Li etcd://
exec:none/x Li git+ssh:// , git+https:// , git+file:// , exec:
zookeeper://127.0.0.1:1 Li zookeeper://
redis://127.0.0.1:1,redis://127.0.0.1:2 several URLs
END
    diff <(lacks_of_page 'Li postgresql:// , mysql:// , mariadb://') \
        <(lacks_of postgresql://127.0.0.1:1/d | grep -v '^--mirror string:$')
}

# One word after -c is its command; without quotes the rest of that would count as KEYs.
@test "KEYs on both sides of -c are 64: the command is not quoted" {
    misuse run deploy -c ./deploy.sh production
    [[ $stderr == *"both sides of -c"*$'\n'"hint: quote the command, or put KEYs before -c" ]]
    misuse read a b --no-wait -c true --quiet c
    export RLOCK_URL=unix://$REDIS_SOCK
    prints 0 'b a' run b a -c 'echo "$RLOCK_KEY"'
    prints 0 'b a' run -n -c 'echo "$RLOCK_KEY"' b a
    says 0 "^rlock: run: 'sh' is a KEY here; a COMMAND comes after --$" run b sh -c true
}

@test "-V and --version print the same" {
    [[ $(rlock -V) == "$(rlock --version)" && $(rlock -V) == rlock\ * ]]
}

@test "the first screen and each page of the help fit a terminal of 80 columns and 24 lines" {
    run -64 --separate-stderr rlock
    # Half a screen, so that the mistake above it stays in sight.
    [[ ! $output && ${#stderr_lines[@]} -le 15 && ${stderr_lines[0]} == 'rlock runs a command while'* ]]
    for screen in "$stderr" "$(rlock help)"; do
        awk 'length > 80 { print "too long: " $0; bad = 1 } END { exit bad }' <<<"$screen"
    done
    for screen in $(rlock help | sed -n 's/^  \([a-z-]*\)  .*/\1/p'); do
        rlock help "$screen" >"$T/help"
        [[ $(tail -n 1 "$T/help") == "More: man rlock-$screen" ]]
        awk 'length > 80 { print "too long: " $0; bad = 1 } END { exit bad }' "$T/help"
        # These five have too many options.
        [[ $screen =~ ^(run|read|write|acquire|latch)$ || $(wc -l <"$T/help") -le 24 ]]
    done
    [[ $(rlock help run) == *"How many"*Waiting*Time*"When something fails"*"Who am I"*"The store"* ]]
    [[ $(rlock help options) == *"Options of all commands"*redis://*zookeepers://*mariadbs://*local:* ]]
}

@test "a wrong command or option is answered with the one that was meant" {
    misuse ls
    [[ $stderr == *"did you mean 'status'?"* ]]
    misuse unlock
    [[ $stderr == *"did you mean 'release' or 'force-release'?"* ]]
    misuse statsu
    [[ $stderr == *"did you mean 'status'?"* ]]
    misuse STATUS
    [[ $stderr == *"did you mean 'status'?"* ]]
    misuse help statsu
    [[ $stderr == *"did you mean 'status'?"* ]]
    misuse help frobnicate
    [[ $stderr == *'hint: rlock help' ]]
    misuse config leese
    [[ $stderr == *"did you mean 'lease'?"* ]]
    misuse run -u redis://a,b k -- true
    [[ $stderr == *'--url has several hosts ('* ]]
    misuse deploy -- echo 'a b'
    [[ ${stderr_lines[1]} == "hint: rlock run deploy -- echo 'a b'" ]]
    for slip in leese:lease wiat:wait waitt:wait no-wiat:no-wait; do
        misuse run "--${slip%:*}" 3s k -- true
        [[ $stderr == *"unknown option --${slip%:*}; did you mean --${slip#*:}?"* ]]
    done
    misuse run --frobnicate k -- true
    [[ $stderr != *'did you mean'* ]]
    for words in 'run k --wait' 'run -n k --label' 'run k -E' 'acquire k --lease' 'fence PATH -w'; do
        misuse $words -- true
        [[ $stderr == *": option ${words##* } needs an argument"* ]]
    done
    misuse run --wait k -- true
    [[ $stderr == *"--wait 'k' is not a duration"* ]]
}

@test "a duration of more than ten years is refused by each option that takes one" {
    local words
    for words in 'run -w 9999999d k -- true' 'reserve k 9999999d -m x' 'latch set k 1 --ttl 9999999d' \
        'check --held 9999999d k' 'fence -w 9999999d --token 1 f' 'history --since 9999999d'; do
        read -r -a words <<<"$words"
        misuse "${words[@]}"
        [[ $stderr == *"'9999999d' is longer than ten years"* ]]
    done
}

@test "a KEY has up to 512 bytes of UTF-8, and no spaces or braces; 1m30s is a duration" {
    printf -v long '%0512d' 0
    export RLOCK_URL=unix://$REDIS_SOCK
    for key in a "$long" deploy/prod.1:x@y 'größe-漢字' '*' 'a"b' "%41" '-'; do
        run -0 rlock run "$key" -- sh -c 'echo "$RLOCK_KEY"'
        [[ $output == "$key" ]]
    done
    for key in '' 'a b' 'a{b' $'\xff\xfe' "0$long"; do
        misuse run "$key" -- true
    done
    misuse force-release --now --yes 'a b'
    prints 0 90000 run --lease=1m30s k -- sh -c 'echo $RLOCK_LEASE_MS'
}

@test "wrong usage of status and force-release: exit 64" {
    misuse status --frobnicate
    misuse status --watch=x
    misuse force-release --now --yes
    misuse force-release --frobnicate k
}

@test "a server that is not there: exit 69, its address, a hint, and the command is not run" {
    export RLOCK_SERVER_WAIT=0
    refused 69 run k -- touch "$T/run"
    [[ ${stderr_lines[0]} == rlock:*unix:///nowhere/at/all* && ${#stderr_lines[@]} -le 2 ]]
    stderr_line 'hint:.*--server-wait.*doctor'
    says 69 'redis://127.0.0.1:1' run -q -u redis://127.0.0.1:1 k -- touch "$T/run"
    run -69 rlock status
    run -69 rlock status -q k
    run -69 rlock force-release --now --yes k
    says 69 'no-such-host.invalid' run -u redis://no-such-host.invalid k -- touch "$T/run"
}
@test "out of memory: exit 71, and it says so, wherever that is" {
    ! grep -qE "__(asan_init|llvm_profile)" "$RLOCK" ||
        skip "what a sanitizer or counters need before rlock"
    local limit status words found=
    words=$(seq 20000) # the tables for them take a megabyte
    # The limit is not --as: a stack that cannot grow is a SEGV, which no program can tell as 71.
    for limit in {5..80}; do
        status=0
        # shellcheck disable=SC2086
        prlimit --data=$((limit * 20000)) rlock run -u "unix://$T/none" --server-wait 0 k -- \
            true $words >"$T/out" 2>&1 3>&- || status=$?
        echo "$((limit * 20)) kB: $status"
        [[ $status == 71 || $status == 69 || $status == 127 ]]
        [[ $status != 71 || $(<"$T/out") != "rlock: out of memory" ]] || found=1
    done
    [[ $found ]]
}

# Sixteen names of one port where no server is, each as long as names of hosts get.
@test "a URL of many long names is cut in messages, and says so; the doctor's JSON has it all" {
    local name url names=()
    for n in {1..16}; do
        printf -v name 'server-%s.%060d.%060d.localhost:1' "$n" 0 0
        names+=("$name")
    done
    for scheme in cluster sentinel zookeeper; do
        url=$scheme://$(IFS=, && echo "${names[*]}")
        [[ $scheme != sentinel ]] || url+=/m
        run -69 --separate-stderr rlock run --server-wait 0 -u "$url" k -- true
        stderr_line "^rlock: k: cannot reach $scheme://server-1\..*\.\.\.(: |$)"
    done
    url=cluster://$(IFS=, && echo "${names[*]}")
    run -69 --separate-stderr rlock doctor --json -u "$url"
    json ".servers[0].url == \"$url\""
}
