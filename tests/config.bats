# Where settings come from, and how passwords stay secret.

load helper

setup_file() {
    start_file --databases 16
    unset RLOCK_CONFIG
}

setup() {
    start_test
    export XDG_CONFIG_HOME=$T/xdg
    mkdir -p "$XDG_CONFIG_HOME/rlock"
}

# prefix_used: prints the prefix of the one key in the database, and removes that.
prefix_used() { # the prefix of the one key in the database
    redis keys '*' | sed 's/:{.*//'
    redis flushall >/dev/null
}

@test "rlock config prints each setting and where it comes from, without passwords" {
    printf '# a comment\nlease = 20s\nlabel = nightly run\npassword = s3cret\n' >"$T/config"
    chmod 600 "$T/config"
    printf '# no\nlease = 1h\n' >"$XDG_CONFIG_HOME/rlock/config"
    RLOCK_URL=$'redis://u:s3cret@h \n unix:///tmp/s' RLOCK_PREFIX=p \
        run -0 --separate-stderr rlock config --config "$T/config" --connect-timeout 7s
    [[ -z $stderr && $output != *s3cret* ]]
    squeezed() { tr -s ' ' <<<"$output"; }
    for name in "url = redis://u:***@h unix:///tmp/s # RLOCK_URL" "prefix = p # RLOCK_PREFIX" \
        "password = *** # $T/config:4" "connect-timeout = 7s # --connect-timeout" \
        "server-wait = 7s # default" "lease = 20s # $T/config:2" \
        "label = nightly run # $T/config:3" "notify = # not set" "no-identity = no # default" \
        "priority-bound = 15m # default"; do
        grep -qxF -- "$name" <(squeezed) || { echo "no line $name" && false; }
    done
    # Each key that the manual has, and no other.
    diff <(sed 's/ .*//' <<<"$output" | sort) \
        <(sed -n '/^The keys are/,/^An option without/s/^\.Ql \([a-z-]*\).*/\1/p' \
            "$TESTS/../man/rlock.1" | sort)
    run -0 rlock config
    grep -qxF "lease = 1h # $XDG_CONFIG_HOME/rlock/config:2" <(squeezed)
    NO_COLOR=1 run -0 rlock config
    grep -qxF "color = never # NO_COLOR" <(squeezed)
    echo 'lease = x' >"$T/config"
    run -78 --separate-stderr rlock config --config "$T/config"
    [[ -z $output && $stderr == "rlock: config: $T/config:1: lease 'x' is not a duration"* ]]
}

@test "rlock config NAME prints only that value, an empty line where there is none" {
    printf 'lease = 20s\nlabel = nightly  run\npassword = s3cret\n' >"$T/config"
    chmod 600 "$T/config"
    export RLOCK_CONFIG=$T/config RLOCK_URL=$'redis://u:s3cret@h \n unix:///tmp/s'
    local name value
    while IFS='|' read -r name value; do
        quiet 0 config --prefix p "$name"
        [[ $output == "$value" ]]
    done <<'END'
lease|20s
label|nightly  run
url|redis://u:***@h unix:///tmp/s
password|***
prefix|p
END
    [[ $(rlock config notify | wc -c) == 1 ]]
    run -64 --separate-stderr rlock config leese
    [[ ! $output && $stderr == "rlock: config: NAME 'leese' is not a setting"* ]]
    run -64 rlock config lease url
    run -64 rlock config lease -- true
    echo 'lease = x' >"$T/config"
    run -78 --separate-stderr rlock config prefix
    [[ ! $output && $stderr == *"$T/config:1: lease 'x'"* ]]
}

@test "an option goes over the environment, and that over the user's file" {
    as_default_user
    echo "prefix = from-user-file" >"$XDG_CONFIG_HOME/rlock/config"
    echo "prefix = from-config-option" >"$T/other"
    rlock run k -- true
    [[ $(prefix_used) == from-user-file ]]
    RLOCK_CONFIG=$T/other rlock run k -- true
    [[ $(prefix_used) == from-config-option ]]
    RLOCK_CONFIG=$XDG_CONFIG_HOME/rlock/config rlock run --config "$T/other" k -- true
    [[ $(prefix_used) == from-config-option ]]
    RLOCK_PREFIX=from-environment rlock run --config "$T/other" k -- true
    [[ $(prefix_used) == from-environment ]]
    RLOCK_PREFIX=from-environment rlock run --prefix from-option --config "$T/other" k -- true
    [[ $(prefix_used) == from-option ]]
    rm "$XDG_CONFIG_HOME/rlock/config"
    rlock run k -- true
    [[ $(prefix_used) == rlock ]]
}

@test "the user's file goes over the system's" {
    as_default_user
    unshare -m true 2>/dev/null || skip "no mount name spaces here"
    [[ ! -e /etc/rlock.conf ]] || skip "there is a /etc/rlock.conf"
    printf 'prefix = system\nlease = 20s\n' >"$T/system"
    in_system() {
        unshare -m sh -c 'mount --bind "$1" /etc && shift && exec "$@"' sh "$T/etc" "$RLOCK" "$@" \
            3>&-
    }
    cp -r --preserve=mode /etc/passwd /etc/group /etc/nsswitch.conf "$T/" 2>/dev/null || true
    mkdir "$T/etc" && cp "$T/passwd" "$T/group" "$T/etc/" && cp "$T/system" "$T/etc/rlock.conf"
    unshare -m mount --bind "$T/etc" /etc 2>/dev/null || skip "no bind mounts here"
    run -0 in_system run k -- sh -c 'echo $RLOCK_LEASE_MS'
    [[ $output == 20000 && $(prefix_used) == system ]]
    echo 'prefix = user' >"$XDG_CONFIG_HOME/rlock/config"
    run -0 in_system run k -- sh -c 'echo $RLOCK_LEASE_MS'
    [[ $output == 20000 && $(prefix_used) == user ]]
    # The files of the folder count in the order of their names, over the one file.
    mkdir "$T/etc/rlock.conf.d"
    echo 'lease = 21s' >"$T/etc/rlock.conf.d/10-lease.conf"
    printf 'lease = 22s\nprefix = folder\n' >"$T/etc/rlock.conf.d/20-lease.conf"
    for name in .30.conf 30 .conf; do
        echo 'lease = 23s' >"$T/etc/rlock.conf.d/$name"
    done
    run -0 in_system run k -- sh -c 'echo $RLOCK_LEASE_MS'
    [[ $output == 22000 && $(prefix_used) == user ]]
    echo 'lease = x' >"$T/etc/rlock.conf.d/15.conf"
    run -78 --separate-stderr in_system run k -- true
    stderr_line "^rlock: run: /etc/rlock.conf.d/15.conf:1: lease 'x' is not a duration"
    # A link that leads nowhere stands for settings that are not there now: the default store would
    # be another one.
    for name in rlock.conf.d/15.conf rlock.conf.d rlock.conf; do
        rm -r "${T:?}/etc/$name"
        ln -s /nonexistent/there "$T/etc/$name"
        run -78 --separate-stderr in_system run k -- true
        stderr_line "^rlock: run: /etc/$name: No such file or directory\$"
        rm "$T/etc/$name"
    done
    run -0 in_system run k -- true
    # The user's file, and a folder above it, as people link their settings.
    for name in rlock/config rlock; do
        rm -rf "${XDG_CONFIG_HOME:?}/$name"
        ln -s /nonexistent/there "$XDG_CONFIG_HOME/$name"
        run -78 --separate-stderr in_system run k -- true
        stderr_line "^rlock: run: .*/rlock/config: No such file or directory\$"
    done
    rm "$XDG_CONFIG_HOME/rlock"
    run -0 in_system run k -- true
}

@test "a config file that makes no sense: exit 78, with file and line" {
    printf '# one\nprefix\n' >"$T/config"
    says 78 "^rlock: .*$T/config.*2" run --config "$T/config" k -- true
    printf 'prefix = p\nurl = %s\0nonsense\n' "$RLOCK_URL" >"$T/config"
    says 78 "^rlock: .*$T/config:2: .*NUL byte" run --config "$T/config" k -- true
    run -78 rlock status --config "$T"
}

@test "a value in quotes is refused: the quotes would be part of it" {
    for text in 'prefix = "p"' "label = 'nightly job'" "password = \"s3cret\""; do
        echo "$text" >"$T/config"
        run -78 --separate-stderr rlock run --config "$T/config" k -- true
        stderr_line "^rlock: run: $T/config:1: ${text%% *}.* is quoted; values are not quoted here\$"
        [[ $stderr != *s3cret* ]]
    done
    # A quote within is text, and in a command it is the shell's.
    printf 'label = it'"'"'s "x" y\nnotify = "true" "x"\nstop = "true"\n' >"$T/config"
    run -0 rlock run --config "$T/config" k -- true
}

@test "a config file with a very long path: what is wrong with it is told" {
    local deep
    deep=$T$(printf '/folder%.0s' {1..300})
    mkdir -p "$deep"
    says 64 '^rlock: status: --config /.*[.][.][.]: No such file' status --config "$deep/none"
    RLOCK_CONFIG=$deep/none says 78 '^rlock: status: RLOCK_CONFIG /.*[.][.][.]: No such' status
    echo 'lease = x' >"$deep/config"
    says 78 "[.][.][.]:1: lease 'x' is not a duration" status --config "$deep/config"
    printf 'lease = 7s\nleese = 7s\n' >"$deep/config"
    says 0 "[.][.][.]:2: unknown key 'leese'; it is ignored" config --config "$deep/config"
    [[ $output == *"lease = 7s "*" # $T/folder/"*"...:1"$'\n'* ]]
}

@test "an unknown key in a config file is a warning, with file and line; the known ones count" {
    as_default_user
    printf 'fence-style = new\nprefix = p\n\nnonsense\t=  s3cret\n' >"$T/config"
    run -0 --separate-stderr rlock run --config "$T/config" k -- true
    [[ ${#stderr_lines[@]} == 2 && $stderr != *s3cret* ]]
    stderr_line "^rlock: $T/config:1: unknown key 'fence-style'; it is ignored\$"
    stderr_line "^rlock: $T/config:4: unknown key 'nonsense'"
    [[ $(prefix_used) == p ]]
    quiet 0 run -q --config "$T/config" k -- true
    printf 'prefix = p\nleese = 3s\n' >"$T/config"
    says 0 "^rlock: $T/config:2: unknown key 'leese'; it is ignored\$" run --config "$T/config" k -- true
    stderr_line "^hint: did you mean 'lease'\?$"
    printf 'fence-style = new\nprefix = p\n\nnonsense\t=  s3cret\n' >"$T/config"
    # A wrong value is an error, whatever overrides it.
    echo 'lease = 5x' >>"$T/config"
    run -78 --separate-stderr rlock run -q --config "$T/config" --lease 5s k -- true
    [[ $stderr == "rlock: run: $T/config:5: lease '5x' is not a duration"* ]]
}

@test "a config file that is named must exist; the usual ones need not" {
    for name in "$T/none" "$T/none/none" "$T/config/none"; do
        : >"$T/config"
        run -64 --separate-stderr rlock status --config "$name"
        stderr_line "^rlock: status: --config $name: (No such file|Not a directory)"
        RLOCK_CONFIG=$name says 78 "^rlock: status: RLOCK_CONFIG $name: " status
    done
    says 64 '^rlock: status: --config is empty' status --config ''
    rm -r "$XDG_CONFIG_HOME"
    RLOCK_CONFIG='' run -0 rlock status
    HOME=$T/none XDG_CONFIG_HOME='' RLOCK_CONFIG='' run -0 rlock status
}

@test "paths in a config file: ~ is the home, relative ones begin where the file is" {
    as_default_user
    redis config set requirepass s3cret
    mkdir -p "$T/home/in" "$T/etc/in"
    for place in "$T/home/in/password" "$T/home/password" "$T/etc/in/password" "$T/etc/password"; do
        install -m 600 <(echo s3cret) "$place"
    done
    cd "$T" || return
    reads() { # PATH FILE
        echo "password-file = $1" >"$T/etc/config"
        HOME=$T/home quiet 0 run --config "$2" k -- true
    }
    # shellcheck disable=SC2088
    for place in '~/in/password' '~//password' "$T/etc/password" in/password ./password \
        ../home/password '~/../etc/password'; do
        reads "$place" "$T/etc/config"
        reads "$place" etc/config
    done
    # The message has the completed path.
    echo 'password-file = none' >"$T/etc/config"
    run -78 --separate-stderr rlock status --config etc/config
    stderr_line "^rlock: status: etc/config:1: password-file 'etc/none' cannot be read: No such file"
    echo 'password-file = ~/none' >"$T/etc/config"
    HOME=$T/home says 78 "password-file '$T/home/none' cannot be read" status --config etc/config
    HOME='' run -78 --separate-stderr rlock status --config etc/config
    stderr_line "etc/config:1: password-file '~/none' begins with '~', and HOME is not set"
    echo 'password-file = ~root/none' >"$T/etc/config"
    says 78 "etc/config:1: password-file '~root/none' begins with ~USER" status --config etc/config
    # Beside a pipe there is nothing: as on a command line.
    run -0 rlock status --config <(echo password-file = etc/password)
    # On a command line, '~' is for the shell.
    cp "$T/etc/password" '~'
    run -0 rlock status --password-file '~'
}

# The path of a file is relative to the config file, not to the working directory.
@test "the files of TLS are looked for where the config file is" {
    mkdir "$T/in"
    for key in tls-ca tls-cert tls-key; do
        printf 'url = rediss://127.0.0.1:1\ntls-cert = ../config\n%s = ../none.pem\n' \
            "$key" >"$T/in/config"
        [[ $key != tls-cert ]] || sed -i 2d "$T/in/config"
        : >"$T/config"
        RLOCK_URL='' run -78 --separate-stderr rlock status --config "$T/in/config"
        stderr_line "^rlock: status: $T/in/config:[23]: $key '$T/in/../none.pem' cannot be read: No such file"
    done
}

@test "H103 a password that others can read is a warning" {
    as_default_user
    redis config set requirepass s3cret
    warned() { # REGEX COMMAND...: in one line, and not under -q
        run -0 --separate-stderr rlock "${@:2}"
        [[ ${#stderr_lines[@]} == 1 && $stderr != *s3cret* ]]
        stderr_line "$1"
        quiet 0 "${@:2:1}" -q "${@:3}"
    }
    echo s3cret >"$T/password"
    printf 'url = unix://:s3cret@%s\n' "$REDIS_SOCK" >"$T/url"
    printf 'password = s3cret\n' >"$T/key"
    for mode in 0604 0644 0777; do
        chmod "$mode" "$T/password" "$T/url" "$T/key"
        warned "^rlock: password file $T/password: every user of this host can read it \\(mode $mode\\)\$" \
            run --password-file "$T/password" k -- true
        warned "^rlock: $T/key: every user of this host can read the password in it \\(mode $mode\\)\$" \
            run --config "$T/key" k -- true
        RLOCK_URL='' warned "^rlock: $T/url: every user" run --config "$T/url" k -- true
    done
    for mode in 0600 0640 0400; do
        chmod "$mode" "$T/password" "$T/url" "$T/key"
        quiet 0 run --password-file "$T/password" k -- true
        quiet 0 run --config "$T/key" k -- true
    done
    # A file without a password.
    printf 'url = unix://%s\npassword-file = password\npassword =\n' "$REDIS_SOCK" >"$T/config"
    sed -i 3d "$T/config"
    chmod 644 "$T/config"
    RLOCK_URL='' quiet 0 run --config "$T/config" k -- true
    # No other user reads a pipe.
    quiet 0 run --password-file <(echo s3cret) k -- true
}

@test "a value that makes no sense: 64 from the command line, 78 from elsewhere, with its place" {
    while read -r name value; do
        echo "--- $name: $value"
        says 64 "^rlock: run: --$name " run "--$name=$value" k -- touch "$T/run"
        printf '# one\n%s=%s\n' "$name" "$value" >"$T/config"
        says 78 "^rlock: status: $T/config:2: $name " status --config "$T/config"
        # The other places, for some of them.
        [[ $name == @(url|lease|password-file) ]] || continue
        says 64 "^rlock: run: --$name " run "--$name" "$value" k -- touch "$T/run"
        RLOCK_CONFIG=$T/config says 78 "^rlock: release: $T/config:2: $name " release \
            --owner $NO_OWNER k
        RLOCK_CONFIG='' HOME=$T run -78 --separate-stderr env -u XDG_CONFIG_HOME sh \
            -c 'mkdir -p "$HOME/.config/rlock" &&
            cp "$HOME/config" "$HOME/.config/rlock" && exec "$RLOCK" latch status k' 3>&-
        stderr_line "^rlock: latch: $T/.config/rlock/config:2: $name "
    done <<'END'
url gopher://h
url
prefix a{b
prefix
connect-timeout 0
connect-timeout
server-wait -1
server-wait
tls-server-name .
tls-server-name
color sometimes
lease 999ms
wait 5 minutes
conflict-exit-code 256
conflict-exit-code
replicas most
at-least x
at-most x
kill-after x
on-lost ignore
on-lost signal:
on-lost signal:NONE
password-file
sentinel-user
sentinel-password-file
tls-ca
tls-cert
tls-key
END
    # Settings without a variable.
    RLOCK_URL=gopher://h says 78 '^rlock: status: RLOCK_URL has the unknown scheme '\''gopher'\'' \(rlock help options lists all\)$' status
    RLOCK_PREFIX='a b' run -78 --separate-stderr rlock status
    stderr_line "^rlock: status: RLOCK_PREFIX 'a b' "
    RLOCK_SERVER_WAIT=soon run -78 --separate-stderr rlock status
    stderr_line "^rlock: status: RLOCK_SERVER_WAIT 'soon' is not a duration"
    RLOCK_OWNER=x says 78 "^rlock: run: RLOCK_OWNER 'x' " run k -- true
    # An option goes over a variable before that is judged; a file is judged in any case.
    RLOCK_URL=gopher://h RLOCK_PREFIX='a b' run -0 rlock run -u "unix://rlock:@$REDIS_SOCK" \
        --prefix rlock k -- true
}

@test "an empty variable counts as not set; white space is refused" {
    as_default_user
    for name in RLOCK_PREFIX RLOCK_SERVER_WAIT RLOCK_PASSWORD RLOCK_SENTINEL_PASSWORD RLOCK_CONFIG \
        RLOCK_OWNER NO_COLOR; do
        run -0 --separate-stderr env "$name=" rlock run k -- true
        [[ -z $stderr ]]
    done
    RLOCK_URL='' quiet 0 config url
    [[ $output == redis://127.0.0.1:6379/0 ]]
    RLOCK_URL=$'\n'" $RLOCK_URL"$'\t\n' run -0 rlock run k -- true
    for name in ' ' $'\t' $'\n'; do
        RLOCK_URL=$name says 78 '^rlock: status: RLOCK_URL is empty' status
        RLOCK_PREFIX=$name run -78 rlock status
        RLOCK_CONFIG=$name run -78 rlock status
        run -64 rlock status --url "$name"
        run -64 rlock status --prefix "$name"
        run -64 rlock status --config "$name"
        run -64 rlock status --password-file "$name"
    done
}

@test "one of several --url that is empty is not left out" {
    for urls in '"" redis://h' 'redis://h ""' 'redis://h " " redis://i'; do
        eval "set -- $urls"
        says 64 '^rlock: status: --url is empty' status "${@/#/--url=}"
    done
}

# silent COMMAND...: it fails, and says nothing of the password.
silent() {
    run --separate-stderr "$@"
    printf '%s\n' "$*" "$stderr"
    [[ $status != 0 && $stderr != "" && $output$stderr != *s3c* && $output$stderr != *cret* ]]
}

# "silent" fails if the output has "s3cret" in it, or a part of it.
@test "H103 no password in a message about the address that it is in, whatever is wrong with that" {
    export RLOCK_SERVER_WAIT=0 # one of them is an address
    while read -r url; do
        silent rlock status --url "$url"
        silent rlock status -v --url "$url" --url redis://other
        silent env RLOCK_URL="$url" rlock acquire -v k
        echo "url = $url" >"$T/config"
        RLOCK_URL='' silent rlock run -v --config "$T/config" k -- true
    done <<'END'
redis://:s3cret@
redis://u:s3cret@h:99999
redis://u:s3%cret@h
redis://u:s3cret%00@h
redis://u:s3cret@h/x
redis://u:s3cret@h?db=1
redis://u:s3cret@[::1
redis://u:s3c/ret@h
redis://u:s3c@cret@h:x
redis://u:s3cret@.
unix://u:s3cret@relative
sentinel://u:s3cret@h
cluster://u:s3cret@h/1
gopher://u:s3cret@h
REDIS://u:s3cret@h
redis://s3cret@h
redis://u:s3cret@h redis://v:s3cret@h
END
}

# The address is given where another word belongs, which the message quotes.
@test "H103 no password in a message about an address in the wrong place, however long it is" {
    as_default_user
    long=$(printf 's3cret%.0s' {1..20})
    for url in redis://u:s3cret@h "redis://u:s3cret@h redis://v:s3cret@i" "redis://u:$long@h"; do
        for option in prefix config password-file connect-timeout server-wait lease wait replicas \
            on-lost; do
            silent rlock run -v "--$option" "$url {" k -- true
        done
        silent rlock run -v --tls-ca "$url" -u rediss://h k -- true
        silent env RLOCK_PREFIX="$url {" rlock status
        silent env RLOCK_CONFIG="$url" rlock status
        while read -r line; do
            eval "silent rlock $line"
            [[ $status == 64 && $stderr == rlock:* ]]
        done <<'END'
"$url"
help "$url"
run "{$url" -- true
run k "$url" true
run k "--url=$url" true
run --limit="$url" k -- true
run --lease "$url" k -- true
run --report-fd "$url" k -- true
acquire --keep "$url" k
renew --owner "$url" k
release --owner "$url" k
release "{$url"
status "{$url"
status "--urls=$url"
status "--$url"
status --watch="$url"
force-release --now --yes "{$url"
latch "$url" k
latch wait "{$url"
latch set k "$url"
latch set --ttl "$url" k 1
latch count-down --id "{$url" k
local "$url"
END
        for line in "run k -- true" "acquire k" "renew k" "release k"; do
            silent env RLOCK_OWNER="$url" rlock $line
            [[ $status == 78 && $stderr == *"RLOCK_OWNER 'redis://u:***"* ]]
        done
        echo "${url% *} = 1" >"$T/config"
        run -0 --separate-stderr rlock status --config "$T/config"
        [[ $stderr == *"unknown key 'redis://u:***"* && $stderr != *s3cret* ]]
    done
}

@test "several URLs are a quorum, from wherever they come" {
    local several="unix://$T/a unix://$T/b  unix://$T/c"
    is_wrong() { # STATUS COMMAND...: without a connection
        run "-$1" --separate-stderr "${@:2}"
        [[ $stderr != *reach* ]]
    }
    echo "url = $several redis://h:x" >"$T/config"
    is_wrong 78 rlock run --config "$T/config" k -- true
    stderr_line "^rlock: run: $T/config:1: url \\(number 4 of several\\) has a port"
    RLOCK_URL="$several nonsense" is_wrong 78 rlock run k -- true
    stderr_line '^rlock: run: RLOCK_URL \(number 4 of several\) has no scheme'
    is_wrong 64 rlock run -u redis://a -u redis:// k -- true
    stderr_line '^rlock: run: --url \(number 2 of several\) has no host'
    is_wrong 64 rlock run -u 'redis://a redis://' k -- true
    stderr_line '^rlock: run: --url \(number 2 of several\) has no host'
    printf 'url = redis://a\nurl = redis://b\n' >"$T/config"
    is_wrong 78 rlock run --config "$T/config" k -- true
    stderr_line "^rlock: run: $T/config:2: .*one line"
    RLOCK_URL=' ' is_wrong 78 rlock run k -- true
    stderr_line 'RLOCK_URL is empty'
    # An option goes over all of the variable's.
    RLOCK_URL=$several run -0 rlock run -u "unix://$REDIS_SOCK" k -- true
}

# The case of a name, the database and the password do not make another node. "local:" is a store of
# its own, and there can be no other beside it.
@test "H87 the same node twice in a quorum is refused before anything is asked" {
    run -78 --separate-stderr rlock run -u redis://h -u redis://i -u redis://H:6379/3 k -- true
    stderr_line '^rlock: run: --url names the same node twice: redis://H:6379/3$'
    RLOCK_URL="unix://:pw@$T/a unix://:other@$T/a?db=1" run -78 --separate-stderr rlock status
    stderr_line "^rlock: status: RLOCK_URL names the same node twice: unix://$T/a\\?db=1$"
    says 64 '--url with --local has local: beside another store' \
        run --local -u "unix://$REDIS_SOCK" k -- true
    run -0 rlock config --local
    [[ $output =~ 'url = local:'\ +'# --local' ]]
}

@test "H103 the passwords of several URLs are shown nowhere" {
    local several="redis://:s3cret@127.0.0.1:1 redis://ann:s3cret@127.0.0.1:2 unix://:s3cret@$T/c"
    RLOCK_URL=$several run -0 rlock run -u "unix://$REDIS_SOCK" k -- env
    [[ $output == *"RLOCK_URL=redis://127.0.0.1:1 redis://ann:@127.0.0.1:2 unix://$T/c"* ]]
    [[ $output != *s3cret* ]]
    # A password with a blank in it is wrong; no part of it is shown.
    run -64 --separate-stderr rlock run -u 'redis://:s3cret or@h' k -- true
    [[ $stderr != *s3cret* && $stderr != *or@* ]]
}

@test "--replicas takes numbers up to 100, majority and all, --grace yes and no, and nothing else" {
    # A value that makes sense is passed over, up to the next mistake.
    for value in 0 1 100 majority all; do
        says 64 "--replicas 'x' is not a number" run --replicas $value --replicas x k -- true
        printf 'replicas = %s\nprefix = a b\n' $value >"$T/config"
        says 78 ':2: prefix' run --config "$T/config" k -- true
    done
    for value in -1 +1 101 1x '' Majority 99999999999999999999; do
        run -64 rlock acquire --replicas "$value" k
    done
    printf 'grace = maybe\n' >"$T/config"
    says 78 ":1: grace 'maybe' is not yes or no" run --config "$T/config" k -- true
}

@test "the database of an address is the one that is used" {
    rlock run -u "unix://$REDIS_SOCK?db=3" k -- true
    [[ $(redis-cli -s "$REDIS_SOCK" -n 3 dbsize) == 1 && $(redis dbsize) == 0 ]]
    redis flushall
    start_proxy
    rlock run -u "redis://${proxy[proxy]}/4" k -- true
    [[ $(redis-cli -s "$REDIS_SOCK" -n 4 dbsize) == 1 && $(redis dbsize) == 0 ]]
    refused 69 run -u "unix://$REDIS_SOCK?db=99" k -- touch "$T/run"
}

@test "H19 a password is taken from the address, RLOCK_PASSWORD, a file and the config file" {
    as_default_user
    redis acl setuser deployer on '>s3cret' '~rlock:*' '&rlock:*' '+@all' >/dev/null
    redis config set requirepass 'p@ss/w:rd%'
    says 77 '^rlock: .*([Aa]uth|[Pp]assword)' run k -- touch "$T/run"
    run -0 rlock run -u "unix://:p%40ss%2Fw%3Ard%25@$REDIS_SOCK" k -- true
    RLOCK_PASSWORD='p@ss/w:rd%' run -0 rlock run k -- true
    printf 'p@ss/w:rd%%\n' >"$T/password"
    chmod 600 "$T/password"
    run -0 rlock run --password-file "$T/password" k -- true
    printf 'password = p@ss/w:rd%%\n' >"$T/config"
    chmod 600 "$T/config"
    run -0 rlock run --config "$T/config" k -- true
    printf 'password-file = %s\n' "$T/password" >"$T/config"
    run -0 rlock run --config "$T/config" k -- true
    RLOCK_PASSWORD=wrong run -77 --separate-stderr rlock run k -- touch "$T/run"
    [[ $stderr != *wrong* || $stderr == *"wrong password"* ]]
    RLOCK_PASSWORD=wr0ng run -77 --separate-stderr rlock status -v
    [[ $stderr != *wr0ng* && ! -e $T/run ]]
    run -0 rlock run -u "unix://deployer:s3cret@$REDIS_SOCK" k -- true
    RLOCK_PASSWORD=s3cret run -0 rlock run -u "unix://deployer:@$REDIS_SOCK" k -- true
    run -77 rlock run -u "unix://deployer:other@$REDIS_SOCK" k -- true
    run -77 rlock run -u "unix://nobody:s3cret@$REDIS_SOCK" k -- true
    run -64 rlock run --password-file "$T/missing" k -- true
    printf 'p@ss/w:rd%%\0\n' >"$T/password"
    says 64 "^rlock: .*$T/password.*NUL byte" run --password-file "$T/password" k -- touch "$T/run"
    [[ ! -e $T/run ]]
}

@test "H103 no password for the command, in the process list, in what -v says, or in the store" {
    redis acl setuser deployer on '>s3cret' '~*' '&*' '+@all' >/dev/null
    export RLOCK_URL=unix://deployer:s3cret@$REDIS_SOCK
    RLOCK_PASSWORD=s3cret run -0 rlock run k -- env
    [[ $output != *s3cret* && $output != *RLOCK_PASSWORD* &&
        $output == *RLOCK_URL=unix://*"$REDIS_SOCK"* ]]
    hold a k -v -u "$RLOCK_URL"
    for one in "${pid[a]}" "$(agent_of "${pid[a]}")" "$(command_of "${pid[a]}")"; do
        [[ -n $one ]]
        run tr '\0' ' ' <"/proc/$one/cmdline"
        [[ $output != *s3cret* ]]
    done
    run cat "$T/a.err"
    [[ $output != *s3cret* ]]
    [[ $(redis hgetall "rlock:{k}") != *s3cret* ]]
    run -0 rlock status
    [[ $output != *s3cret* ]]
}

@test "what the store lacks is refused unasked: exit 64 from the command line, 78 from a file" {
    # A server that is asked would not be there: 69.
    says 64 '^rlock: run: cluster:// has no --grace$' run --grace -u cluster://127.0.0.1:1 k -- true
    says 64 '^rlock: init: cluster:// has no init$' init -u cluster://127.0.0.1:1
    echo 'grace = yes' >"$BATS_TEST_TMPDIR/config"
    run -78 --separate-stderr rlock run --config "$BATS_TEST_TMPDIR/config" -u cluster://127.0.0.1:1 k -- true
    stderr_line "^rlock: run: $BATS_TEST_TMPDIR/config:1: cluster:// has no --grace\$"
    echo 'priority = 1' >"$BATS_TEST_TMPDIR/config"
    run -78 --separate-stderr rlock run --config "$BATS_TEST_TMPDIR/config" -u zookeeper://127.0.0.1:1 k -- true
    stderr_line '^rlock: run: zookeeper:// has no --priority$'
}

@test "options of run count in a file, and unless-done there is refused with --any, too" {
    as_default_user
    printf '%s = yes\n' keep-credentials no-renew wait-descendants no-reentrant >"$T/config"
    printf 'unless-done = 1h\npriority = -9\nstop = true\n' >>"$T/config"
    export RLOCK_CONFIG=$T/config
    redis acl setuser deployer on '>s3cret' '~*' '&*' '+@all' >/dev/null
    RLOCK_URL=unix://deployer:s3cret@$REDIS_SOCK run -0 rlock run k -- env
    [[ $output == *RLOCK_URL=unix://deployer:s3cret@* ]]
    run -75 rlock run k -- true
    run -78 --separate-stderr rlock run --any k l -- true
    stderr_line "^rlock: run: $T/config:5: unless-done '1h' does not go with --any"
    run -64 --separate-stderr rlock run --unless-done 1h --any k l -- true
    # The fixed lease is enforced, and nesting is ruled out.
    run -124 rlock run --lease 6s l -- sleep 60
    run -78 rlock run l -- rlock run -n l -- true
}

@test "unless-done in a file is for run only: acquire and reserve, which run nothing, do without" {
    as_default_user
    echo 'unless-done = 1h' >"$T/config"
    export RLOCK_CONFIG=$T/config
    run -0 rlock run k -- true
    run -75 rlock run k -- true
    run -0 --separate-stderr rlock acquire k
    run -0 rlock release --owner "$output" k
    run -0 rlock reserve -m try k 1m
}
