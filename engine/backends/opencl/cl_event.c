/* Engine events over native ones: state, waiting and times. */
#include "opencl.h"

void drupe_cl_event_close(drupe_event *event)
{
    drupe_cl_event *native = drupe_native(event);
    drupe_cl_queue_inherit(native);
    drupe_cl_mark_clear(&native->mark);
}

/* The thread's error may mean that the device is gone: on GPUs a fault shows like this, and nothing works
 * after it. */
static void note_loss(drupe_queue *queue)
{
    const drupe_cl_queue *native = drupe_native(queue);
    drupe_error error = *drupe_error_last();
    if (error.status != DRUPE_E_DEVICE_LOST || native->device->caps.cpu) return;
    drupe_core_device_lost(drupe_queue_device(queue), &error, false);
    drupe_error_restore(&error);
}

drupe_status drupe_cl_event_state(drupe_event *event, drupe_event_state *state)
{
    drupe_cl_event *native = drupe_native(event);
    cl_int status = drupe_cl_mark_status(&native->mark);
    switch (status) {
    case CL_QUEUED: *state = DRUPE_EVENT_QUEUED; break;
    case CL_SUBMITTED: *state = DRUPE_EVENT_SUBMITTED; break;
    case CL_RUNNING: *state = DRUPE_EVENT_RUNNING; break;
    case CL_COMPLETE: *state = DRUPE_EVENT_COMPLETE; break;
    default:
        *state = DRUPE_EVENT_FAILED;
        /* The status goes to the thread's error, where the caller looks for it. */
        if (drupe_cl_fail_event(status) == DRUPE_OK) *state = DRUPE_EVENT_COMPLETE;
        note_loss(drupe_event_queue(event));
        break;
    }
    return DRUPE_OK;
}

drupe_status drupe_cl_event_wait(drupe_event *event, uint64_t timeout_ns)
{
    drupe_cl_event *native = drupe_native(event);
    return drupe_cl_mark_wait(&native->mark, timeout_ns);
}

drupe_status drupe_cl_event_times(drupe_event *event, drupe_times *times)
{
    const drupe_cl_event *native = drupe_native(event);
    const drupe_cl_queue *queue = drupe_native(drupe_event_queue(event));
    static const cl_profiling_info keys[4] = {CL_PROFILING_COMMAND_QUEUED, CL_PROFILING_COMMAND_SUBMIT,
                                              CL_PROFILING_COMMAND_START, CL_PROFILING_COMMAND_END};
    cl_ulong values[4] = {0};
    if (!queue->timed) {
        return drupe_error_set(DRUPE_E_UNSUPPORTED, "%s",
                               queue->device->caps.profiling
                                   ? "This queue keeps no times: open it with profiling."
                                   : "This OpenCL device keeps no times of its work.");
    }
    /* Where nobody asked for times, nobody but the trace wants to know, and that only when it ran. */
    for (int i = queue->profiling ? 0 : 2; i < 4; i++) {
        cl_int code = native->mark.api->GetEventProfilingInfo(native->mark.id, keys[i], sizeof values[i],
                                                              &values[i], NULL);
        if (code != CL_SUCCESS) {
            return drupe_cl_fail_as(DRUPE_E_UNSUPPORTED, code,
                                    "The OpenCL driver has no times for this event.");
        }
    }
    /* To markers on queues without order NVIDIA's driver gives the times of another event. */
    bool stale = queue->unordered && values[2] < values[0];
    if (values[3] == 0 || values[3] < values[2] || stale) {
        return drupe_error_set(DRUPE_E_UNSUPPORTED,
                               "The OpenCL driver's times for this event make no sense: it began at %llu ns and "
                               "ended at %llu ns.",
                               (unsigned long long)values[2], (unsigned long long)values[3]);
    }
    *times = (drupe_times){values[0], values[1], values[2], values[3]};
    return DRUPE_OK;
}

drupe_status drupe_cl_event_notify(drupe_event *event)
{
    drupe_cl_event *native = drupe_native(event);
    return drupe_cl_mark_notify(&native->mark, event);
}
