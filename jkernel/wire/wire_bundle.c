/* Messages as they go over the wire. What stands before a large content is one block, the content stays where
 * it is, and buffers are a block behind it: whoever writes needs three slices, and nothing large is copied.
 */
#include "jkernel/wire/zmtp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void frame_append(jk_buffer *out, jk_slice slice, bool more)
{
    char head[JK_FRAME_HEAD];
    jk_buffer_append(out, head, jk_zmtp_head(head, slice.size, more));
    jk_buffer_append(out, slice.data, slice.size);
}

static jk_slice object_or_empty(jk_slice slice)
{
    return slice.size ? slice : (jk_slice){"{}", 2};
}

/* Everything up to the content, and that too unless it was taken. Returns 0, or -1: no memory. */
static int head_fill(jk_bundle *bundle, const jk_envelope *envelope, const jk_signer *signer)
{
    jk_slice parts[JK_SIGNED_PARTS] = {envelope->header, object_or_empty(envelope->parent),
                                       object_or_empty(envelope->metadata),
                                       object_or_empty(envelope->content)};
    char signature[JK_SIGNATURE_SIZE], head[JK_FRAME_HEAD];
    int signed_size = jk_signer_sign(signer, parts, signature);
    if (signed_size < 0) return -1;
    jk_buffer *out = &bundle->head;
    const jk_message *to = envelope->to;
    if (!to) frame_append(out, envelope->topic, true);
    for (size_t i = 1; to && i < to->identities; i++) frame_append(out, jk_message_identity(to, i), true);
    frame_append(out, (jk_slice){"<IDS|MSG>", 9}, true);
    frame_append(out, (jk_slice){signature, (size_t)signed_size}, true);
    for (int i = 0; i + 1 < JK_SIGNED_PARTS; i++) frame_append(out, parts[i], true);
    jk_slice content = parts[JK_SIGNED_PARTS - 1];
    jk_buffer_append(out, head, jk_zmtp_head(head, content.size, envelope->nbuffers > 0));
    if (bundle->content.size == 0) jk_buffer_append(out, content.data, content.size);
    for (size_t i = 0; i < envelope->nbuffers; i++)
        frame_append(&bundle->tail, envelope->buffers[i], i + 1 < envelope->nbuffers);
    return out->failed || bundle->tail.failed ? -1 : 0;
}

static void parts_fill(jk_bundle *bundle)
{
    jk_slice all[] = {
        {bundle->head.data, bundle->head.size}, bundle->content, {bundle->tail.data, bundle->tail.size}};
    size_t count = 0;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (all[i].size == 0) continue;
        bundle->parts[count++] = all[i];
        bundle->size += all[i].size;
    }
}

static jk_bundle *bundle_finish(jk_bundle *bundle, atomic_size_t *total)
{
    parts_fill(bundle);
    bundle->references = 1;
    bundle->total = total;
    if (total) atomic_fetch_add(total, bundle->size);
    return bundle;
}

static void bundle_free(jk_bundle *bundle)
{
    if (bundle->content_free) bundle->content_free((void *)(uintptr_t)bundle->content.data, bundle->hint);
    jk_buffer_clear(&bundle->head);
    jk_buffer_clear(&bundle->tail);
    jk_memory_release(bundle);
}

jk_bundle *jk_bundle_pack(const jk_envelope *envelope, const jk_signer *signer, atomic_size_t *total)
{
    jk_bundle *bundle = jk_memory_clear(sizeof *bundle);
    if (!bundle) {
        if (envelope->content_free)
            envelope->content_free((void *)(uintptr_t)envelope->content.data, envelope->hint);
        errno = ENOMEM;
        return NULL;
    }
    bundle->content_free = envelope->content_free;
    bundle->hint = envelope->hint;
    if (envelope->content_free) bundle->content = envelope->content;
    if (head_fill(bundle, envelope, signer) == 0) return bundle_finish(bundle, total);
    bundle_free(bundle);
    errno = ENOMEM;
    return NULL;
}

jk_bundle *jk_bundle_of(jk_buffer *bytes, atomic_size_t *total)
{
    jk_bundle *bundle = bytes->failed ? NULL : jk_memory_clear(sizeof *bundle);
    if (!bundle) {
        jk_buffer_clear(bytes);
        return NULL;
    }
    bundle->head = *bytes;
    memset(bytes, 0, sizeof *bytes);
    return bundle_finish(bundle, total);
}

jk_bundle *jk_bundle_retain(jk_bundle *bundle)
{
    bundle->references++;
    return bundle;
}

void jk_bundle_release(jk_bundle *bundle)
{
    if (!bundle || --bundle->references > 0) return;
    if (bundle->total) atomic_fetch_sub(bundle->total, bundle->size);
    bundle_free(bundle);
}
