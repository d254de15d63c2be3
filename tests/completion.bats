# The completions, in the shells that are installed: options, live keys, the wrapped command.
# bash_offers LINE: the words that Tab Tab shows; "offered SHELL" reads rows "LINE | PATTERN": it
# offers that for the LINE, and nothing where there is no PATTERN.

load helper

setup() {
    start_test
    mkdir "$T/bin"
    ln -s "$RLOCK" "$T/bin/rlock"
    export PATH=$T/bin:$PATH COMPLETIONS=$TESTS/../completions TERM=dumb
}

# bash_offers LINE: the words that Tab Tab shows.
bash_offers() {
    bash --norc -c '
        . /usr/share/bash-completion/bash_completion
        . "$COMPLETIONS/rlock"
        COMP_LINE=$1 COMP_POINT=${#1} COMP_TYPE=9 COMP_KEY=9
        read -ra COMP_WORDS <<<"$1"
        [[ $1 != *" " ]] || COMP_WORDS+=("")
        COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        _rlock rlock "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}" 2>/dev/null
        printf "%s\n" "${COMPREPLY[@]}"' bash "$1" 3>&-
}

# offered SHELL: a row of standard input, "LINE | PATTERN", is what that shell offers for the LINE.
# Without a PATTERN, it offers nothing. The keys are missing where a slow machine has not told them
# within a second, so it is asked again.
offered() {
    local line pattern
    while IFS='|' read -r line pattern; do
        poll_until 5 offers "$1" "${line% }" "${pattern# }" ||
            { echo "$line offers: $output" && false; }
    done
}

offers() { # SHELL LINE PATTERN
    output=$("$1_offers" "$2")
    # shellcheck disable=SC2053 # a pattern
    [[ $output == $3 ]]
}

@test "bash completes commands, options, live keys, values, and files of the wrapped command" {
    [[ -e /usr/share/bash-completion/bash_completion ]] || skip "no bash-completion here"
    hold a deploy-prod
    hold b nightly
    rlock latch set build-1 1
    touch "$T/some-file"
    cd "$T"
    offered bash <<'END'
rlock st | status
rlock  | *run*force-release*
rlock run --le | --lease*
rlock force-release --p | *--purge*
rlock status dep | deploy-prod
rlock force-release --yes  | *deploy-prod*nightly*
rlock run --on-lost c | continue
rlock run nightly -- cat some-f | some-file
rlock read nightly deploy-prod -- cat some-f | some-file
rlock latch run --id 1 nightly -- cat some-f | some-file
rlock run nightly --limit 3  | *--*deploy-prod*
rlock acquire --keep 1 dep | deploy-prod
rlock release nightly  |
rlock latch  | *set*count-down*run*wait*status*list*delete*
rlock latch set --tt | --ttl
rlock latch run --id 1 build  | --
rlock latch wait  | build-1
rlock latch count-down --id 1 bu | build-1
rlock latch list ni |
rlock latch set  |
rlock status bu |
rlock latch wait --i |
rlock run --color=al | always
rlock run -nE |
rlock run -nE  | 0*75
rlock status --config some | some-file
rlock fence so | some-file
rlock config server-w | server-wait
rlock config lease  |
rlock run --label  |
END
    diff <(bash_offers "rlock run --url " | sort | xargs -n 7) - <<'END'
cluster:// clusters:// etcd:// etcds:// exec: git+file:// git+https://
git+ssh:// local: mariadb:// mariadbs:// mysql:// mysqls:// postgres://
postgresql:// postgresqls:// redis:// rediss:// sentinel:// sentinels:// unix://
valkey:// valkeys:// zookeeper:// zookeepers://
END
}

@test "bash: a key is never run or expanded" {
    [[ -e /usr/share/bash-completion/bash_completion ]] || skip "no bash-completion here"
    cd "$T"
    hold a '$(touch$IFS$9owned)'
    hold b '`touch$IFS$9owned`'
    poll_until 5 offers bash "rlock status " "*touch*"
    [[ ! -e owned ]]
}

@test "zsh completes commands, options and live keys" {
    command -v zsh >/dev/null || skip "no zsh here"
    hold a deploy-prod
    rlock latch set gate-1 1
    HOME=$T on_terminal zsh -f -i <<'EOF'
send PS1='<$((1+1))>'; setopt promptsubst\n
send fpath=($COMPLETIONS ${fpath:#*/(X|AIX|BSD|Cygwin|Darwin|Debian|Linux|Redhat|Solaris)})\n
send autoload -Uz compinit; compinit -u -d $T/dump; print $((6*7))\n
expect 42
send rlock st\t
expect rlock status
send dep
tab deploy-prod
send \x15rlock run --at-m\t
expect --at-most
send \x15rlock read one dep
tab deploy-prod
send \x15rlock latch cou\t
expect count-down
send --i\t
expect --id
send \x15rlock latch wait ga
tab gate-1
send \x15rlock status -u clu\t
expect cluster
send \x15exit 0\n
status 0
EOF
}

@test "fish completes commands, options and live keys" {
    command -v fish >/dev/null || skip "no fish here"
    hold a deploy-prod
    rlock latch set gate-1 1
    fish_offers() {
        HOME=$T fish --no-config -c 'source $COMPLETIONS/rlock.fish; complete -C "$argv[1]"' "$1" \
            3>&-
    }
    offered fish <<'END'
rlock st | status*
rlock run --at-m | --at-most*
rlock acquire --ke | --keep*
rlock read one dep | deploy-prod*
rlock read one -- rloc | rlock*
rlock latch c | count-down*
rlock latch set --tt | --ttl*
rlock status dep | deploy-prod*
rlock latch delete ga | gate-1*
rlock latch set ga |
rlock status ga |
rlock latch li | list*
END
}

@test "keys are those of the store that the line names" {
    as_default_user
    hold a here
    hold b there --prefix other
    poll_until 5 eval '[[ $(rlock help --complete status "" | cut -f 1) == here ]]'
    poll_until 5 eval '[[ $(rlock help --complete status --prefix other "" | cut -f 1) == there ]]'
    prints_nothing 0 help --complete status -u unix:///nowhere ""
    prints_nothing 0 help --complete status --prefix "a b" ""
}

# commands: prints the subcommands that "rlock help" lists.
commands() {
    rlock help | sed -n 's/^  \([a-z-]*\)  .*/\1/p'
}

# options_of SUBCOMMAND: prints the long options that its help lists, sorted.
options_of() {
    { rlock help "$1" && rlock help options; } | awk '$1 ~ /^-/ { for (i = 1; $i ~ /^-/; i++) if ($i ~ /^--/) print $i }' |
        sed 's|[[,].*||' | sort -u
}

@test "bash: each option belongs to its command" {
    [[ -e /usr/share/bash-completion/bash_completion ]] || skip "no bash-completion here"
    diff -u <(commands | sort) <(bash_offers "rlock " | grep -v '^--\|^help$' | sort)
    diff -u <(commands | sort) <(bash_offers "rlock help " | grep -v '^options$' | sort)
    for command in $(commands); do
        [[ $command == latch || $command == local ]] && continue
        diff -u <(options_of "$command") <(bash_offers "rlock $command --" | sort -u)
    done
    # An action of latch takes some of them.
    for command in set count-down run wait status list; do
        bash_offers "rlock latch $command --"
    done >"$T/offered"
    diff -u <(options_of latch) <(sort -u "$T/offered")
}

# page COMMAND: its manual page, or the one that it leads to.
page() {
    local file=$TESTS/../man/rlock-$1.1
    [[ $(<"$file") == .so\ * ]] && file=$TESTS/../man/$(sed 's|^\.so man1/||' "$file")
    echo "$file"
}

@test "the manual has the defaults that the help prints" {
    for words in run options; do
        rlock help "$words" | awk '/^(  -[a-zA-Z], |      )--/ { if (text) print text; text = "" }
            { text = text " " $0 } END { print text }' |
            tr -s ' ' | sed -nE 's/^.*--([a-z-]+)( [A-Z]+)? .*default ([^ )]+)\).*/\1 \3/p'
    done >"$T/defaults"
    [[ $(wc -l <"$T/defaults") -ge 9 ]]
    while read -r option default; do
        sed -n "/^\.It .*Fl -$option\b/,/^\.It .*Fl /p" "$TESTS/../man/rlock-run.1" \
            "$TESTS/../man/rlock.1" | sed '$d' | grep -qF "$default" ||
            { echo "--$option has another default than $default" && false; }
    done <"$T/defaults"
}

@test "every command and every option of the help is in the manual" {
    for command in $(commands); do
        grep -qE "Cm .*\\b$command\\b" "$TESTS/../man/rlock.1"
        comm -23 <(options_of "$command") \
            <(grep -ohP 'Fl -\K[a-z-]+' "$(page "$command")" "$TESTS/../man/rlock.1" |
                sed 's/^/--/' | sort -u) >"$T/missing"
        [[ ! -s $T/missing ]] || { echo "not in the manual of $command: $(<"$T/missing")" && false; }
    done
}
