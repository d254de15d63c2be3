/* The network of a fuzz target: sockets whose other end says what the input says. The calls of libc
 * that net/stream.c makes come here (ld --wrap).
 *
 * Bytes of the input are what is received. One of them is not: WIRE_MARK, and after it what happens
 * instead; two of them are one byte that is received. */
#ifndef WIRE_H
#define WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WIRE_MARK 0xff
enum { WIRE_END, WIRE_RESET, WIRE_PAUSE, WIRE_REFUSE, WIRE_EVENTS };

struct loop;

/* Puts the input on the wire. Borrowed. */
void wire_feed(const uint8_t *data, size_t size);
/* One thing happens: a socket connects, something arrives, or time passes. False if nothing ever
 * will. */
bool wire_turn(struct loop *loop);
/* Sockets that are open. */
int wire_open(void);

#endif
