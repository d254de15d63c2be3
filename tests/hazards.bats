# Every hazard of one server has a test named after it, or a reason in HAZARDS.md.

bats_require_minimum_version 1.5.0

@test "each of H1 to H110 is tested or explained" {
    local n missing="" tests
    tests=$(cd "$BATS_TEST_DIRNAME/.." && pwd)/tests
    for n in {1..110}; do
        grep -qE "^@test \"([^\"]* )?H${n}[ \"]" "$tests"/*.bats ||
            grep -qE "^- H$n: .{20}" "$tests/HAZARDS.md" ||
            missing+=" H$n"
    done
    echo "neither tested nor explained:$missing"
    [[ -z $missing ]]
}

@test "what is tested is not explained away" {
    local n tests=$BATS_TEST_DIRNAME
    for n in $(sed -n 's/^- H\([0-9]*\):.*/\1/p' "$tests/HAZARDS.md"); do
        run -1 grep -E "^@test \"([^\"]* )?H${n}[ \"]" "$tests"/*.bats
    done
}
