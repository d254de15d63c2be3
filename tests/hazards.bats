# HAZARDS.md says of each hazard what it is; a test's name says which hazards it is about.

bats_require_minimum_version 1.5.0

setup() {
    cd "$BATS_TEST_DIRNAME" || return
}

@test "each of H1 to H139 is there, and those beyond once and in order" {
    numbers=$(sed -nE 's/^- \*\*H([0-9]+)\*\* .*/\1/p' HAZARDS.md)
    diff <(seq 139) <(head -n 139 <<<"$numbers")
    sort -n -u -c <<<"$numbers"
}

@test "a hazard that a test is named after is explained" {
    unknown=$(comm -23 <(./hazards | cut -d ' ' -f 1 | sort -u) \
        <(sed -nE 's/^- \*\*(H[0-9]+)\*\* .*/\1/p' HAZARDS.md | sort -u))
    echo "not in HAZARDS.md: $unknown"
    [[ ! $unknown ]]
}

@test "each has a test, or it says why not" {
    explained=$(awk '/^- \*\*H/ { gsub(/\*/, "", $2); number = $2 }
        (/^  - not tested( by name)?: / || /^  - not built: /) && length > 30 { print number }' HAZARDS.md)
    untested=$(comm -13 <({ ./hazards | cut -d ' ' -f 1; echo "$explained"; } | sort -u) \
        <(sed -nE 's/^- \*\*(H[0-9]+)\*\* .*/\1/p' HAZARDS.md | sort -u))
    echo "neither tested nor explained: $untested"
    [[ ! $untested ]]
}
