# The completions, in the shells that are installed: options, live keys, the wrapped command.

load helper

setup() {
    T=$BATS_TEST_TMPDIR
    export RLOCK_TEST_ID=$T
    declare -gA pid=()
    mkdir "$T/bin"
    ln -s "$RLOCK" "$T/bin/rlock"
    export PATH=$T/bin:$PATH COMPLETIONS=$TESTS/../completions TERM=dumb
}

# bash_offers LINE: what Tab Tab would show.
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

@test "bash: commands, options, live keys, files of the wrapped command" {
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
}

@test "bash: a key is never run or expanded" {
    [[ -e /usr/share/bash-completion/bash_completion ]] || skip "no bash-completion here"
    cd "$T"
    hold a '$(touch$IFS$9owned)'
    hold b '`touch$IFS$9owned`'
    output=$(bash_offers "rlock status ")
    [[ $output == *touch* && ! -e owned ]]
}

@test "zsh: commands, options, live keys" {
    command -v zsh >/dev/null || skip "no zsh here"
    hold a deploy-prod
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
send \x15exit 0\n
status 0
EOF
}

@test "fish: commands, options, live keys" {
    command -v fish >/dev/null || skip "no fish here"
    hold a deploy-prod
    fish_offers() {
        HOME=$T fish --no-config -c 'source $COMPLETIONS/rlock.fish; complete -C "$argv[1]"' "$1" 3>&-
    }
    output=$(fish_offers "rlock st")
    [[ $output == status* ]]
    output=$(fish_offers "rlock run --at-m")
    [[ $output == --at-most* ]]
    output=$(fish_offers "rlock status dep")
    [[ $output == deploy-prod* ]]
}

@test "every option of the help is completed, and no other" {
    local command option
    for command in run status force-release; do
        for option in $(rlock help "$command" | grep -oE '(^|[ ,])--[a-z-]+' | tr -d ' ,' | sort -u); do
            for file in rlock _rlock rlock.fish; do
                grep -qE -- "(--| )${option#--}\\b" "$COMPLETIONS/$file" ||
                    { echo "$file lacks $option of $command" && false; }
            done
        done
    done
}

@test "every option of the help is in the manual" {
    local command option
    for command in run status force-release; do
        for option in $(rlock help "$command" | grep -oE '(^|[ ,])--[a-z-]+' | tr -d ' ,' | sort -u); do
            grep -qE -- "Fl -${option#--}\\b" "$TESTS/../man/rlock-$command.1" "$TESTS/../man/rlock.1" ||
                { echo "no $option of $command" && false; }
        done
    done
}
