/* Messages as they go over the wire. What stands before a large content is one block, the content stays where
 * it is, and buffers are a block behind it: whoever writes needs three slices, and nothing large is copied.
 */
#include "jkernel/wire/zmtp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void frame_append(jk_buffer *out, jk_bytes slice, bool more)
{
    char head[JK_FRAME_HEAD];
    jk_buffer_append(out, head, jk_zmtp_head(head, slice.size, more));
    jk_buffer_append(out, slice.data, slice.size);
}

/* Everything up to the content, and that too unless it was taken. Returns 0, or -1: no memory. */
static int head_fill(jk_wire_message *wire, const jk_envelope *envelope, const jk_signer *signer)
{
    jk_bytes parts[JK_SIGNED_PARTS];
    char signature[JK_SIGNATURE_SIZE], head[JK_FRAME_HEAD];
    int signed_size = jk_envelope_sign(envelope, signer, parts, signature);
    if (signed_size < 0) return -1;
    jk_buffer *out = &wire->head;
    const jk_message *to = envelope->to;
    if (!to) frame_append(out, envelope->topic, true);
    for (size_t i = 1; to && i < to->identities; i++) frame_append(out, jk_message_identity(to, i), true);
    frame_append(out, (jk_bytes){"<IDS|MSG>", 9}, true);
    frame_append(out, (jk_bytes){signature, (size_t)signed_size}, true);
    for (int i = 0; i + 1 < JK_SIGNED_PARTS; i++) frame_append(out, parts[i], true);
    jk_bytes content = parts[JK_SIGNED_PARTS - 1];
    jk_buffer_append(out, head, jk_zmtp_head(head, content.size, envelope->nbuffers > 0));
    if (wire->content.size == 0) jk_buffer_append(out, content.data, content.size);
    for (size_t i = 0; i < envelope->nbuffers; i++)
        frame_append(&wire->tail, envelope->buffers[i], i + 1 < envelope->nbuffers);
    return out->failed || wire->tail.failed ? -1 : 0;
}

static void parts_fill(jk_wire_message *wire)
{
    jk_bytes all[] = {{wire->head.data, wire->head.size}, wire->content, {wire->tail.data, wire->tail.size}};
    size_t count = 0;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (all[i].size == 0) continue;
        wire->parts[count++] = all[i];
        wire->size += all[i].size;
    }
}

static jk_wire_message *wire_message_finish(jk_wire_message *wire, atomic_size_t *total)
{
    parts_fill(wire);
    wire->references = 1;
    wire->total = total;
    if (total) atomic_fetch_add(total, wire->size);
    return wire;
}

static void wire_message_free(jk_wire_message *wire)
{
    if (wire->content_free) wire->content_free((void *)(uintptr_t)wire->content.data, wire->hint);
    jk_buffer_clear(&wire->head);
    jk_buffer_clear(&wire->tail);
    jk_memory_release(wire);
}

jk_wire_message *jk_wire_message_pack(const jk_envelope *envelope, const jk_signer *signer,
                                      atomic_size_t *total)
{
    jk_wire_message *wire = jk_memory_clear(sizeof *wire);
    if (!wire) {
        if (envelope->content_free)
            envelope->content_free((void *)(uintptr_t)envelope->content.data, envelope->hint);
        errno = ENOMEM;
        return NULL;
    }
    wire->content_free = envelope->content_free;
    wire->hint = envelope->hint;
    if (envelope->content_free) wire->content = envelope->content;
    if (head_fill(wire, envelope, signer) == 0) return wire_message_finish(wire, total);
    wire_message_free(wire);
    errno = ENOMEM;
    return NULL;
}

jk_wire_message *jk_wire_message_of(jk_buffer *bytes, atomic_size_t *total)
{
    jk_wire_message *wire = bytes->failed ? NULL : jk_memory_clear(sizeof *wire);
    if (!wire) {
        jk_buffer_clear(bytes);
        return NULL;
    }
    wire->head = *bytes;
    memset(bytes, 0, sizeof *bytes);
    return wire_message_finish(wire, total);
}

jk_wire_message *jk_wire_message_retain(jk_wire_message *wire)
{
    wire->references++;
    return wire;
}

void jk_wire_message_release(jk_wire_message *wire)
{
    if (!wire || --wire->references > 0) return;
    if (wire->total) atomic_fetch_sub(wire->total, wire->size);
    wire_message_free(wire);
}
