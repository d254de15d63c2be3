# Passwords in the environment: who gets them, who does not, and what an rlock says that misses one
# under another. setup_bob: a user with a password that is in no other environment.

load helper

setup_file() {
    export REDISCLI_AUTH=s3cret
    start_file --requirepass s3cret --user ann on '>s3cret' '~*' '&*' '+@all' \
        --user may on nopass '~*' '+ping'
}

setup() {
    start_test
    export RLOCK_URL=unix://$REDIS_SOCK
    install -m 600 <(echo s3cret) "$T/password"
}

@test "H134 a password that an outer rlock has taken out is missed, and it is said what took it" {
    for url in "unix://$REDIS_SOCK" "unix://:s3cret@$REDIS_SOCK" "unix://ann:s3cret@$REDIS_SOCK"; do
        unset RLOCK_PASSWORD
        [[ $url == *@* ]] || export RLOCK_PASSWORD=s3cret
        while read -r line; do
            echo "--- $url: $line"
            read -ra words <<<"$line"
            RLOCK_URL=$url run -77 --separate-stderr rlock run k -- rlock "${words[@]}"
            stderr_line '^hint: an outer rlock takes passwords out .* --keep-credentials, or use --password-file'
            # The error names neither the variable that is not there, nor what was in it.
            [[ $stderr != *RLOCK_PASSWORD* && $stderr != *s3cret* ]]
            # A release is sent before the server has answered to the greeting, which is said in a
            # line of its own.
            [[ $(grep -vc 'may have been released' <<<"$stderr") == 2 ]]
        done <<'END'
run k -- true
run -n other -- true
read -n other -- true
acquire other
status
status k
release --owner 6c807ae5-d3fd-554c-dcae-87fe288c8e42 k
force-release --now --yes k
latch set l 1
latch count-down l
latch wait l
latch status l
latch run l -- true
latch delete l
init
END
    done
}

@test "H134 a quorum and doctor say what took the password away, too" {
    RLOCK_PASSWORD=s3cret says 77 '^hint: an outer rlock takes passwords out' run k -- rlock \
        status -u "unix://$REDIS_SOCK" -u "unix://$REDIS_DIR/./sock" -u "unix://$REDIS_DIR/././sock"
    RLOCK_PASSWORD=s3cret run -69 --separate-stderr rlock run k -- rlock doctor
    [[ $output == *'an outer rlock takes passwords out '*--keep-credentials* &&
        $output != *RLOCK_PASSWORD* ]]
    prints 69 '*--password-file or RLOCK_PASSWORD*' doctor
}

@test "H134 --keep-credentials, a password file or a configuration file: a nested rlock works" {
    export RLOCK_PASSWORD=s3cret
    rlock latch set l 9
    while read -r line; do
        echo "--- $line"
        read -ra words <<<"$line"
        quiet 0 run --keep-credentials k -- rlock "${words[@]}"
        quiet 0 run k -- rlock "${words[0]}" --password-file "$T/password" "${words[@]:1}"
    done <<'END'
run -n k -- true
status k
latch count-down l
END
    RLOCK_URL=unix://ann:s3cret@$REDIS_SOCK run -0 rlock run --keep-credentials k -- \
        env -u RLOCK_PASSWORD rlock latch count-down l
    printf 'password-file = password\n' >"$T/config"
    RLOCK_CONFIG=$T/config run -0 rlock run k -- rlock run -n k -- rlock run -n k -- true
}

@test "H103 a RLOCK_URL without a scheme, where another URL counts, hands no password on" {
    local url
    for url in ann:hidd3n@host redis:/ann:hidd3n@host "hidd3n@host redis://ann:hidd3n@other"; do
        RLOCK_URL=$url run -0 rlock run -u "unix://ann:s3cret@$REDIS_SOCK" k -- \
            sh -c 'env; tr "\0" "\n" <"/proc/$PPID/environ"'
        [[ $output == *RLOCK_URL=*@host* && $output != *hidd3n* ]]
    done
    url=exec:some/ann@host
    RLOCK_URL=$url prints 0 "$url" run -u "unix://ann:s3cret@$REDIS_SOCK" k -- printenv RLOCK_URL
}

@test "H134 an outer rlock is not blamed where a password is wrong, or was never there" {
    blameless() { # COMMAND...
        run -77 --separate-stderr "$@"
        [[ $stderr != *--keep-credentials* ]]
        stderr_line '^hint: '
    }
    blameless rlock status
    RLOCK_PASSWORD=wrong blameless rlock status
    # There is a password, and it is wrong.
    export RLOCK_PASSWORD=s3cret
    blameless rlock run k -- rlock status -u "unix://:wrong@$REDIS_SOCK"
    blameless rlock run k -- env RLOCK_PASSWORD=wrong rlock status
    # A right is missing.
    blameless rlock run k -- rlock status -u "unix://may:@$REDIS_SOCK"
}

# A user with a password that is in no other environment.
setup_bob() {
    redis acl setuser bob on '>hidd3n' '~*' '&*' '+@all'
    unset REDISCLI_AUTH
}

@test "H103 /proc/PID/environ shows no password of any process of rlock" {
    setup_bob
    local one count=0
    export RLOCK_PASSWORD=hidd3n RLOCK_URL=unix://bob:hidd3n@$REDIS_SOCK
    sleep 1000 3>&- &
    rlock acquire --keep "$!" kept
    hold a k
    queue w k
    bg l rlock latch wait l
    bg_prints s rlock status --watch
    poll_until 10 grep -q 'bob:\*\*\*' "/proc/${pid[l]}/environ"
    for one in $(pgrep rlock); do
        grep -qsz "^RLOCK_TEST_ID=$T\$" "/proc/$one/environ" || continue
        ((++count))
        tr '\0' '\n' <"/proc/$one/environ" >"$T/seen"
        tr '\0' ' ' <"/proc/$one/cmdline" >>"$T/seen"
        grep -q "^RLOCK_URL=unix://bob:\*\*\*\*\*\*@$REDIS_SOCK\$" "$T/seen"
        run ! grep hidd3n "$T/seen"
    done
    # The renewer, holder and waiter with an agent each, the latch's waiter, and status.
    ((count >= 7))
}

@test "H103 --keep-credentials gives the command the password, and rlock shows it to no one" {
    setup_bob
    for url in "unix://$REDIS_SOCK" "unix://:hidd3n@$REDIS_SOCK" \
        "unix://bob:hidd3n@$REDIS_SOCK redis://:also@h"; do
        RLOCK_URL=$url RLOCK_PASSWORD=hidd3n run -0 rlock run --keep-credentials \
            -u "unix://bob:hidd3n@$REDIS_SOCK" k -- sh -c \
            'echo "$RLOCK_URL|$RLOCK_PASSWORD|"; tr "\0" "\n" <"/proc/$PPID/environ"; tr "\0" " " <"/proc/$PPID/cmdline"'
        [[ ${lines[0]} == "$url|hidd3n|" ]]
        output=${output#*$'\n'}
        [[ $output != *hidd3n* && $output != *also* && $output == *RLOCK_PASSWORD=* ]]
    done
}
