/*
 * base/id.h - names that weir makes.
 *
 * A job id is 20 characters of 0-9a-v (base 32 that sorts like its bytes):
 * 48 bits of ms since 1970, then 52 random bits. Ids of one process that are
 * made within one ms rise, so a bulk enqueue keeps its order. Thread-safe;
 * renewed after fork.
 */
#ifndef WR_BASE_ID_H
#define WR_BASE_ID_H

#define WR_ID_LEN 20

void wr_id_make(char out[WR_ID_LEN + 1]);

/* "host.pid.random": blanks and control characters of the host replaced; at
 * most 96 bytes. Never the same twice, also for pid 1 of a restarted container. */
void wr_id_make_worker(char out[97]);

#endif
