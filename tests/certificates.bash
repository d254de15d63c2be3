# Certificates for the tests of TLS, and a redis-server that has one.
# shellcheck shell=bash disable=SC2154

# All in one directory: CA.pem with CA.key and so on.
CERTS=${BATS_FILE_TMPDIR:-/nonexistent}/certs

new_key=(-newkey ec -pkeyopt ec_paramgen_curve:P-256 -noenc)

# authority NAME [OPTION...]: one that vouches for itself.
authority() {
    mkdir -p "$CERTS"
    openssl req -x509 "${new_key[@]}" -keyout "$CERTS/$1.key" -out "$CERTS/$1.pem" -days 2 \
        -subj "/CN=authority $1" -addext basicConstraints=critical,CA:TRUE "${@:2}" 2>"$CERTS/log"
}

# certificate NAME AUTHORITY EXTENSION [OPTION...]: EXTENSION as in subjectAltName=DNS:h,IP:1.2.3.4,
# or several, one a line; options are those of "openssl x509".
certificate() {
    openssl req "${new_key[@]}" -keyout "$CERTS/$1.key" -subj "/CN=$1" 2>"$CERTS/log" |
        openssl x509 -req -CA "$CERTS/$2.pem" -CAkey "$CERTS/$2.key" -CAcreateserial -days 2 \
            -extfile <(printf '%s\n' "$3") -out "$CERTS/$1.pem" "${@:4}" 2>"$CERTS/log"
}

# start_tls_file [REDIS OPTION...]: for setup_file. The server's certificate is for localhost and
# 127.0.0.1; PLAIN_PORT and TLS_PORT lead to it besides the Unix socket.
start_tls_file() {
    authority ca
    certificate server ca subjectAltName=DNS:localhost,IP:127.0.0.1
    read -r PLAIN_PORT TLS_PORT <<<"$(free_ports 2)"
    export PLAIN_PORT TLS_PORT
    start_file --port "$PLAIN_PORT" --tls-port "$TLS_PORT" --tls-auth-clients no \
        --tls-cert-file "$CERTS/server.pem" --tls-key-file "$CERTS/server.key" \
        --tls-ca-cert-file "$CERTS/ca.pem" "$@"
}

# server_certificate NAME: another one for new connections.
server_certificate() {
    redis config set tls-cert-file "$CERTS/$1.pem" tls-key-file "$CERTS/$1.key"
}
