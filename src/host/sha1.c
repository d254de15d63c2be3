/* SHA-1, by RFC 3174. */
#include "host/sha1.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"

static uint32_t rotate(uint32_t word, int bits)
{
    return word << bits | word >> (32 - bits);
}

/* Which function and constant a round has. */
static uint32_t mix(int round, uint32_t b, uint32_t c, uint32_t d)
{
    switch (round / 20) {
    case 0: return ((b & c) | (~b & d)) + 0x5a827999;
    case 1: return (b ^ c ^ d) + 0x6ed9eba1;
    case 2: return ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdc;
    default: return (b ^ c ^ d) + 0xca62c1d6;
    }
}

static void digest(uint32_t state[5], const unsigned char *block)
{
    uint32_t w[80], s[5];

    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
               (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
    for (int i = 16; i < 80; i++)
        w[i] = rotate(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    memcpy(s, state, sizeof s);
    for (int i = 0; i < 80; i++) {
        uint32_t next = rotate(s[0], 5) + mix(i, s[1], s[2], s[3]) + s[4] + w[i];
        s[4] = s[3];
        s[3] = s[2];
        s[2] = rotate(s[1], 30);
        s[1] = s[0];
        s[0] = next;
    }
    for (int i = 0; i < 5; i++)
        state[i] += s[i];
}

void sha1_hex(struct piece piece, char hex[SHA1_HEX_SIZE])
{
    uint32_t state[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
    size_t total = ((piece.size + 8) / 64 + 1) * 64;
    unsigned char *padded = mem_zeroed(total);

    memcpy(padded, piece.at, piece.size);
    padded[piece.size] = 0x80;
    for (int i = 0; i < 8; i++)
        padded[total - 1 - (size_t)i] = (unsigned char)((uint64_t)piece.size * 8 >> (8 * i));
    for (size_t at = 0; at < total; at += 64)
        digest(state, padded + at);
    free(padded);
    for (int i = 0; i < 5; i++)
        sprintf(hex + 8 * i, "%08x", state[i]);
}
