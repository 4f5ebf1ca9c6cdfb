/* Who wants to be told when a job ends. */
#include "base/error.h"
#include "store/call.h"
#include "store/scripts.gen.h"

enum weir_err
wr_store_wait(struct wr_store *store, struct wr_queue *queue, struct wr_span id,
              const struct wr_waiter *waiter, bool early, bool *ended,
              struct weir_error *err)
{
    struct wr_call c;
    enum weir_err rc;

    *ended = false;
    wr_call_init(&c, store, queue, wr_pair_wait);
    wr_call_now(&c);
    wr_call_arg(&c, id);
    wr_call_str(&c, waiter->tag);
    wr_call_int(&c, waiter->keep_ms);
    wr_call_str(&c, early ? "1" : "");
    rc = wr_call_run(&c, err);
    if (rc == WEIR_OK) {
        *ended = wr_call_is(&c, "ENDED");
        if (wr_call_is(&c, "GONE"))
            rc = wr_fail(err, WEIR_E_NO_JOB, 0, "no such job in queue %s",
                         wr_queue_name(queue));
        else if (wr_call_is(&c, "MANY"))
            rc = wr_fail(err, WEIR_E_REFUSED, 0,
                         "too many wait for the end of this job already");
    }
    wr_call_fini(&c);
    return rc;
}
