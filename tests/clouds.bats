#!/usr/bin/env bats
# The drivers of examples/drivers that put records into a cloud by its command line, for which
# tests/pretended-cloud stands in. keeps_records: comparison, bytes, names, and that no version
# comes twice; failed_put_is DRIVER ANSWER TEXT: the driver answers a put with ANSWER where kubectl
# or aws fails with TEXT; two_take_turns: the second run begins after the first, and history tells
# of both.
load helper

setup_file() {
    [[ -x ${RLOCK%/*}/rlock-external ]] || skip "rlock-external was not built: it takes Lua 5.1"
    clean_environment
    export PATH=$TESTS/../examples/drivers:$PATH
}

teardown_file() { :; }

setup() {
    start_test
    mkdir "$T/bin" "$T/cloud"
    ln -s "$TESTS/pretended-cloud" "$T/bin/kubectl"
    ln -s "$TESTS/pretended-cloud" "$T/bin/aws"
    export PATH=$T/bin:$PATH CLOUD=$T/cloud RLOCK_SERVER_WAIT=2m
}

teardown() {
    [[ -n $BATS_TEST_COMPLETED ]] || tail -n 20 "$T"/*.err "$T"/*.out 2>/dev/null || true
    end_processes
}

# talk DRIVER LINE...: says that to the driver, and prints its answers, the versions as V and W.
talk() {
    local rest=kubectl/n
    [[ $1 == kubectl ]] || rest=bucket/locks
    printf '%s\n' "hello 1 ${rest#*/}" "${@:2}" | "rlock-store-$1" "${rest#kubectl/}"
}

# version_of KEY DRIVER: of the record that is there.
version_of() {
    talk "$2" "get $1" | sed -n 's/^value \([^ ]*\) .*/\1/p'
}

# failed_put_is DRIVER ANSWER TEXT: the driver answers a put with ANSWER where kubectl or aws fails
# with that TEXT.
failed_put_is() {
    output=$(CLOUD_SAYS=$3 talk "$1" 'put k - 1' x)
    [[ ${output##*$'\n'} == "$2" || ${output##*$'\n'} == "$2 "* ]]
}

# keeps_records DRIVER: comparison, bytes, names, and that no version comes twice.
keeps_records() {
    [[ $(talk "$1" 'get a%2Fb' 'put a%2Fb - 3' 'x y' 'put a%2Fb - 1' z | sed 's/^done .*/done/') == \
        $'ok 1\nnone\ndone\n'* ]]
    local first second
    first=$(version_of a%2Fb "$1")
    [[ $(talk "$1" 'get a%2Fb') == *$'\n'"value $first 3"$'\nx y' ]]
    [[ $(talk "$1" 'put a%2Fb - 1' z) == *$'\nconflict'* ]]
    [[ $(talk "$1" "put a%2Fb $first 3" 'x y') == *$'\ndone '* ]]
    second=$(version_of a%2Fb "$1")
    [[ -n $second && $second != "$first" ]]
    [[ $(talk "$1" "put a%2Fb $first 1" z) == *$'\nconflict'* ]]
    [[ $(talk "$1" "put b $first 1" z) == *$'\nconflict'* ]]
    [[ $(talk "$1" 'list a' 'list c') == $'ok 1\nkey a%2Fb\nend\nend' ]]
}

# two_take_turns URL: the second run begins after the first, and history tells of both.
two_take_turns() {
    export RLOCK_URL=$1
    stay a k
    run -75 rlock run -n k -- true
    queue b k
    ends_well a
    ends_with b 0 60
    run -0 rlock history --json k
    jq -e 'length == 2' <<<"$output"
}

# The driver must tell a put that was not done from one whose outcome is unknown: the cloud's own
# messages say which it is.
@test "Kubernetes: records are kept; a put that fails has failed, is in conflict, or unknown" {
    keeps_records kubectl
    failed_put_is kubectl failed 'Error from server (Forbidden): configmaps is forbidden'
    failed_put_is kubectl failed 'Error from server (NotFound): namespaces "n" not found'
    failed_put_is kubectl conflict 'Error from server (Conflict): the object has been modified'
    failed_put_is kubectl unknown 'Unable to connect to the server: net/http: TLS handshake timeout'
    failed_put_is kubectl unknown 'Error from server (Timeout): the server did not answer'
    failed_put_is kubectl unknown "Got a Retry-After 1s response for attempt 1
Error from server (Conflict): the object has been modified"
}

# The driver must tell a put that was not done from one whose outcome is unknown: the cloud's own
# messages say which it is.
@test "S3: records are kept; a put that fails has failed, is in conflict, or unknown" {
    keeps_records s3
    failed_put_is s3 failed 'An error occurred (AccessDenied) when calling the PutObject operation'
    failed_put_is s3 failed 'Unknown options: --if-none-match, *'
    failed_put_is s3 conflict 'An error occurred (ConditionalRequestConflict) when calling PutObject'
    failed_put_is s3 unknown 'An error occurred (InternalError) when calling the PutObject operation'
    failed_put_is s3 unknown 'Read timeout on endpoint URL: "https://s3.example.org/"'
}

@test "Kubernetes: two runs have the lock one after the other, and history has both" {
    two_take_turns exec:kubectl/namespace
}

@test "S3: two runs have the lock one after the other, and history has both" {
    two_take_turns exec:s3/bucket/locks
}

@test "the doctor: a cloud that writes without comparing versions is unfit: exit 69" {
    export CLOUD_SAYS=lies
    bg kubectl rlock doctor -u exec:kubectl/namespace
    finish kubectl 120
    [[ $status == 69 && $(<"$T/kubectl.out") == *'unfit    create '* ]]
}
