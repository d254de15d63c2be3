# Stand-ins for the commands of the readers of examples and pages, which tell that they ran.
# shellcheck shell=bash disable=SC2016,SC2154

# start_store_of_examples: for setup_file.
start_store_of_examples() {
    export REDISCLI_AUTH=secret
    start_file --requirepass secret
}

# stand_in: for setup. The working directory is the reader's; rlock in PATH runs the program "ran"
# in the place of each command that is not here, and finds the server of the test.
stand_in() {
    start_test
    export LOG=$T/ran URL=$RLOCK_URL
    mkdir "$T/bin" "$T/shell" "$T/place"
    : >"$LOG"
    cd "$T/place" || return
    echo secret >credential
    export CI_COMMIT_SHA=0123abc GITHUB_ENV=$T/github RLOCK_PASSWORD=secret
    : >"$GITHUB_ENV"

    # Records the arguments of a wrapped command; scripts call rlock themselves.
    cat >"$T/bin/ran" <<'END'
#!/bin/sh
echo "$RLOCK_KEY $RLOCK_MODE${RLOCK_SLOT:+ $RLOCK_SLOT}: $*" >>"$LOG"
case $*$RLOCK_KEY in
./migrate.sh?* | ./deploy.sh?*)
    "$RLOCK" run -n "${RLOCK_KEY%% *}" -- true && "$RLOCK" status -q nothing &&
        echo "nested in $RLOCK_KEY" >>"$LOG"
    ;;
esac
END
    cat >"$T/bin/rlock" <<'END'
#!/bin/bash
export RLOCK_URL=$URL
for ((i = 1; i <= $#; i++)); do
    [[ ${!i} == -- ]] && exec "$RLOCK" "${@:1:i}" ran "${@:i+1}"
done
exec "$RLOCK" "$@"
END
    stand_in_for make deploy.sh smoke-test.sh
    chmod +x "$T/bin/"*
    PATH=$T/bin:$PATH
}

# stand_in_for NAME...: commands of the reader, in PATH and in the working directory, that tell when
# they run.
stand_in_for() {
    local name
    for name; do
        printf '#!/bin/sh\nexec ran %s "$@"\n' "$name" >"$T/bin/$name"
        chmod +x "$T/bin/$name"
        ln -sf "../bin/$name" "$T/place/$name"
    done
}

# ran LINE...: these commands were run, in this order, and no others. A LINE is "KEY MODE: COMMAND",
# "KEY MODE SLOT: COMMAND", or " : COMMAND" of one that RLOCK_KEY does not reach.
ran() {
    diff -u <(printf '%s\n' "$@") "$LOG"
}
