# The completions, in the shells that are installed: options, live keys, the wrapped command.

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

@test "bash completes commands, options, live keys, and files of the wrapped command" {
    [[ -e /usr/share/bash-completion/bash_completion ]] || skip "no bash-completion here"
    hold a deploy-prod
    hold b nightly
    output=$(bash_offers "rlock st")
    [[ $output == status ]]
    output=$(bash_offers "rlock ")
    [[ $output == *run* && $output == *force-release* ]]
    output=$(bash_offers "rlock run --le")
    [[ $output == --lease* ]]
    output=$(bash_offers "rlock force-release --p")
    [[ $output == *--purge* ]]
    output=$(bash_offers "rlock status dep")
    [[ $output == deploy-prod ]]
    output=$(bash_offers "rlock force-release --yes ")
    [[ $output == *deploy-prod* && $output == *nightly* ]]
    output=$(bash_offers "rlock run --on-lost c")
    [[ $output == continue ]]
    touch "$T/some-file"
    cd "$T"
    output=$(bash_offers "rlock run nightly -- cat some-f")
    [[ $output == some-file ]]
    output=$(bash_offers "rlock read nightly deploy-prod -- cat some-f")
    [[ $output == some-file ]]
    output=$(bash_offers "rlock latch run --id 1 nightly -- cat some-f")
    [[ $output == some-file ]]
}

@test "bash completes several keys, then a command; one key of acquire; the actions of latch" {
    [[ -e /usr/share/bash-completion/bash_completion ]] || skip "no bash-completion here"
    hold a deploy-prod
    hold b nightly
    output=$(bash_offers "rlock run nightly --limit 3 ")
    [[ $output == *--* && $output == *deploy-prod* ]]
    output=$(bash_offers "rlock acquire --keep 1 dep")
    [[ $output == deploy-prod ]]
    output=$(bash_offers "rlock release nightly ")
    [[ -z $output ]]
    output=$(bash_offers "rlock latch ")
    [[ $output == *set*count-down*run*wait*status*list*delete* ]]
    output=$(bash_offers "rlock latch set --tt")
    [[ $output == --ttl ]]
    output=$(bash_offers "rlock latch run --id 1 build ")
    [[ $output == -- ]]
    # Latches are not offered as locks, nor locks as latches.
    rlock latch set build-1 1
    output=$(bash_offers "rlock latch wait ")
    [[ $output == build-1 ]]
    output=$(bash_offers "rlock latch count-down --id 1 bu")
    [[ $output == build-1 ]]
    output=$(bash_offers "rlock latch list ni")
    [[ -z $output ]]
    output=$(bash_offers "rlock latch set ")
    [[ -z $output ]]
    output=$(bash_offers "rlock status bu")
    [[ -z $output ]]
    output=$(bash_offers "rlock latch wait --i")
    [[ -z $output ]]
}

@test "bash: a key is never run or expanded" {
    [[ -e /usr/share/bash-completion/bash_completion ]] || skip "no bash-completion here"
    cd "$T"
    hold a '$(touch$IFS$9owned)'
    hold b '`touch$IFS$9owned`'
    output=$(bash_offers "rlock status ")
    [[ $output == *touch* && ! -e owned ]]
}

@test "zsh completes commands, options and live keys" {
    command -v zsh >/dev/null || skip "no zsh here"
    hold a deploy-prod
    rlock latch set gate-1 1
    export T
    HOME=$T "$TESTS/terminal.py" zsh -f -i 3>&- <<'EOF'
send PS1='<$((1+1))>'; setopt promptsubst; fpath=($COMPLETIONS $fpath); autoload -Uz compinit; compinit -u -d $T/dump\n
expect <2>
send rlock st\t
expect rlock status
send dep\t
expect deploy-prod
send \x15rlock run --at-m\t
expect --at-most
send \x15rlock read one dep\t
expect deploy-prod
send \x15rlock latch cou\t
expect count-down
send --i\t
expect --id
send \x15rlock latch wait ga\t
expect gate-1
send \x15rlock status -u clu\t
expect cluster
send \x15exit 0\n
status 0
EOF
}

@test "fish completes commands, options and live keys" {
    command -v fish >/dev/null || skip "no fish here"
    hold a deploy-prod
    fish_offers() {
        HOME=$T fish --no-config -c 'source $COMPLETIONS/rlock.fish; complete -C "$argv[1]"' "$1" \
            3>&-
    }
    output=$(fish_offers "rlock st")
    [[ $output == status* ]]
    output=$(fish_offers "rlock run --at-m")
    [[ $output == --at-most* ]]
    output=$(fish_offers "rlock acquire --ke")
    [[ $output == --keep* ]]
    output=$(fish_offers "rlock read one dep")
    [[ $output == deploy-prod* ]]
    output=$(fish_offers "rlock read one -- rloc")
    [[ $output == rlock* ]]
    output=$(fish_offers "rlock latch c")
    [[ $output == count-down* ]]
    output=$(fish_offers "rlock latch set --tt")
    [[ $output == --ttl* ]]
    output=$(fish_offers "rlock status dep")
    [[ $output == deploy-prod* ]]
    rlock latch set gate-1 1
    output=$(fish_offers "rlock latch delete ga")
    [[ $output == gate-1* ]]
    output=$(fish_offers "rlock latch set ga")
    [[ -z $output ]]
    output=$(fish_offers "rlock status ga")
    [[ -z $output ]]
    output=$(fish_offers "rlock latch li")
    [[ $output == list* ]]
}

@test "values are offered where they stand; files where a file is meant" {
    [[ -e /usr/share/bash-completion/bash_completion ]] || skip "no bash-completion here"
    diff <(bash_offers "rlock run --url " | sort | xargs -n 7) - <<'END'
cluster:// clusters:// local: mariadb:// mariadbs:// mysql:// mysqls://
postgres:// postgresql:// postgresqls:// redis:// rediss:// sentinel:// sentinels://
unix:// zookeeper:// zookeepers://
END
    touch "$T/some-file"
    cd "$T"
    [[ $(bash_offers "rlock run --color=al") == always ]]
    [[ $(bash_offers "rlock run -nE") == "" ]]
    [[ $(bash_offers "rlock run -nE " | xargs) == "0 75" ]]
    [[ $(bash_offers "rlock status --config some") == some-file ]]
    [[ $(bash_offers "rlock fence so") == some-file ]]
    [[ $(bash_offers "rlock run --label ") == "" ]]
}

@test "keys are those of the store that the line names" {
    as_default_user
    hold a here
    hold b there --prefix other
    [[ $(rlock help --complete status "" | cut -f 1) == here ]]
    [[ $(rlock help --complete status --prefix other "" | cut -f 1) == there ]]
    run -0 --separate-stderr rlock help --complete status -u unix:///nowhere ""
    [[ -z $output && -z $stderr ]]
    run -0 --separate-stderr rlock help --complete status --prefix "a b" ""
    [[ -z $output && -z $stderr ]]
}

commands() {
    rlock help | sed -n 's/^  \([a-z-]*\)  .*/\1/p'
}

options_of() {
    { rlock help "$1" && rlock help options; } | awk '$1 ~ /^-/ { for (i = 1; $i ~ /^-/; i++) if ($i ~ /^--/) print $i }' |
        sed 's|[[,].*||' | sort -u
}

@test "bash: each option belongs to its command" {
    [[ -e /usr/share/bash-completion/bash_completion ]] || skip "no bash-completion here"
    local command
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
    local words option default
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
    local command option
    for command in $(commands); do
        grep -qE "Cm .*\\b$command\\b" "$TESTS/../man/rlock.1"
        for option in $(options_of "$command"); do
            grep -qE -- "Fl -${option#--}\\b" "$(page "$command")" "$TESTS/../man/rlock.1" ||
                { echo "no $option of $command" && false; }
        done
    done
}
