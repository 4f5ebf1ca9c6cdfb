/* weir/weir.h - all of the client library. Workers add weir/worker.h. */
#ifndef WEIR_WEIR_H
#define WEIR_WEIR_H

#include <weir/client.h>
#include <weir/cron.h>
#include <weir/error.h>

#endif
