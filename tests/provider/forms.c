// SPDX-License-Identifier: Apache-2.0 OR MIT
// The tables of forms and the transfer that tries them: see forms.h.
#include "forms.h"

#include <stdio.h>

// Three pieces that make up the whole buffer, the middle one empty.
static size_t cut(const struct message *message, struct iovec pieces[3])
{
    size_t first = message->length / 3;
    pieces[0] = (struct iovec){message->buffer, first};
    pieces[1] = (struct iovec){NULL, 0};
    pieces[2] = (struct iovec){message->buffer + first, message->length - first};
    return 3;
}

static ssize_t do_send(struct fid_ep *ep, const struct message *m)
{
    return fi_send(ep, m->buffer, m->length, NULL, m->address, m->context);
}

static ssize_t do_sendv(struct fid_ep *ep, const struct message *m)
{
    struct iovec pieces[3];
    return fi_sendv(ep, pieces, NULL, cut(m, pieces), m->address, m->context);
}

static ssize_t send_with(struct fid_ep *ep, const struct message *m, uint64_t flags)
{
    struct iovec pieces[3];
    struct fi_msg msg = {.msg_iov = pieces,
                         .iov_count = cut(m, pieces),
                         .addr = m->address,
                         .context = m->context,
                         .data = m->data};
    return fi_sendmsg(ep, &msg, flags);
}

static ssize_t do_sendmsg(struct fid_ep *ep, const struct message *m)
{
    return send_with(ep, m, FI_COMPLETION);
}

static ssize_t do_sendmsg_data(struct fid_ep *ep, const struct message *m)
{
    return send_with(ep, m, FI_COMPLETION | FI_REMOTE_CQ_DATA | FI_DELIVERY_COMPLETE);
}

static ssize_t do_sendmsg_inject(struct fid_ep *ep, const struct message *m)
{
    return send_with(ep, m, FI_COMPLETION | FI_INJECT);
}

static ssize_t do_inject(struct fid_ep *ep, const struct message *m)
{
    return fi_inject(ep, m->buffer, m->length, m->address);
}

static ssize_t do_senddata(struct fid_ep *ep, const struct message *m)
{
    return fi_senddata(ep, m->buffer, m->length, NULL, m->data, m->address, m->context);
}

static ssize_t do_injectdata(struct fid_ep *ep, const struct message *m)
{
    return fi_injectdata(ep, m->buffer, m->length, m->data, m->address);
}

static ssize_t do_tsend(struct fid_ep *ep, const struct message *m)
{
    return fi_tsend(ep, m->buffer, m->length, NULL, m->address, m->tag, m->context);
}

static ssize_t do_tsendv(struct fid_ep *ep, const struct message *m)
{
    struct iovec pieces[3];
    return fi_tsendv(ep, pieces, NULL, cut(m, pieces), m->address, m->tag, m->context);
}

static ssize_t tsend_with(struct fid_ep *ep, const struct message *m, uint64_t flags)
{
    struct iovec pieces[3];
    struct fi_msg_tagged msg = {.msg_iov = pieces,
                                .iov_count = cut(m, pieces),
                                .addr = m->address,
                                .tag = m->tag,
                                .context = m->context,
                                .data = m->data};
    return fi_tsendmsg(ep, &msg, flags);
}

static ssize_t do_tsendmsg(struct fid_ep *ep, const struct message *m)
{
    return tsend_with(ep, m, FI_COMPLETION);
}

static ssize_t do_tsendmsg_data(struct fid_ep *ep, const struct message *m)
{
    return tsend_with(ep, m, FI_COMPLETION | FI_REMOTE_CQ_DATA | FI_DELIVERY_COMPLETE);
}

static ssize_t do_tsendmsg_inject(struct fid_ep *ep, const struct message *m)
{
    return tsend_with(ep, m, FI_COMPLETION | FI_INJECT);
}

static ssize_t do_tinject(struct fid_ep *ep, const struct message *m)
{
    return fi_tinject(ep, m->buffer, m->length, m->address, m->tag);
}

static ssize_t do_tsenddata(struct fid_ep *ep, const struct message *m)
{
    return fi_tsenddata(ep, m->buffer, m->length, NULL, m->data, m->address, m->tag, m->context);
}

static ssize_t do_tinjectdata(struct fid_ep *ep, const struct message *m)
{
    return fi_tinjectdata(ep, m->buffer, m->length, m->data, m->address, m->tag);
}

static ssize_t do_recv(struct fid_ep *ep, const struct message *m)
{
    return fi_recv(ep, m->buffer, m->length, NULL, m->address, m->context);
}

static ssize_t do_recvv(struct fid_ep *ep, const struct message *m)
{
    struct iovec pieces[3];
    return fi_recvv(ep, pieces, NULL, cut(m, pieces), m->address, m->context);
}

static ssize_t do_recvmsg(struct fid_ep *ep, const struct message *m)
{
    struct iovec pieces[3];
    struct fi_msg msg = {
        .msg_iov = pieces, .iov_count = cut(m, pieces), .addr = m->address, .context = m->context};
    return fi_recvmsg(ep, &msg, FI_COMPLETION);
}

static ssize_t do_trecv(struct fid_ep *ep, const struct message *m)
{
    return fi_trecv(ep, m->buffer, m->length, NULL, m->address, m->tag, 0, m->context);
}

static ssize_t do_trecvv(struct fid_ep *ep, const struct message *m)
{
    struct iovec pieces[3];
    return fi_trecvv(ep, pieces, NULL, cut(m, pieces), m->address, m->tag, 0, m->context);
}

static ssize_t do_trecvmsg(struct fid_ep *ep, const struct message *m)
{
    struct iovec pieces[3];
    struct fi_msg_tagged msg = {.msg_iov = pieces,
                                .iov_count = cut(m, pieces),
                                .addr = m->address,
                                .tag = m->tag,
                                .ignore = 0xff,
                                .context = m->context};
    msg.tag ^= 0x5a; // ignored bits
    return fi_trecvmsg(ep, &msg, FI_COMPLETION);
}

const struct send_form send_forms[] = {
    {.name = "fi_send", .call = do_send},
    {.name = "fi_sendv", .call = do_sendv},
    {.name = "fi_sendmsg", .call = do_sendmsg},
    {.name = "fi_sendmsg with data", .call = do_sendmsg_data, .data = true},
    {.name = "fi_sendmsg with FI_INJECT", .call = do_sendmsg_inject, .short_only = true},
    {.name = "fi_inject", .call = do_inject, .inject = true, .short_only = true},
    {.name = "fi_senddata", .call = do_senddata, .data = true},
    {.name = "fi_injectdata",
     .call = do_injectdata,
     .data = true,
     .inject = true,
     .short_only = true},
    {.name = "fi_tsend", .call = do_tsend, .tagged = true},
    {.name = "fi_tsendv", .call = do_tsendv, .tagged = true},
    {.name = "fi_tsendmsg", .call = do_tsendmsg, .tagged = true},
    {.name = "fi_tsendmsg with data", .call = do_tsendmsg_data, .tagged = true, .data = true},
    {.name = "fi_tsendmsg with FI_INJECT",
     .call = do_tsendmsg_inject,
     .tagged = true,
     .short_only = true},
    {.name = "fi_tinject", .call = do_tinject, .tagged = true, .inject = true, .short_only = true},
    {.name = "fi_tsenddata", .call = do_tsenddata, .tagged = true, .data = true},
    {.name = "fi_tinjectdata",
     .call = do_tinjectdata,
     .tagged = true,
     .data = true,
     .inject = true,
     .short_only = true},
    {0},
};

const struct receive_form receive_forms[] = {
    {.name = "fi_recv", .call = do_recv},
    {.name = "fi_recvv", .call = do_recvv},
    {.name = "fi_recvmsg", .call = do_recvmsg},
    {.name = "fi_trecv", .call = do_trecv, .tagged = true},
    {.name = "fi_trecvv", .call = do_trecvv, .tagged = true},
    {.name = "fi_trecvmsg", .call = do_trecvmsg, .tagged = true},
    {0},
};

static void post_receive(struct link *link, const struct receive_form *form,
                         const struct message *message) {
    memset(message->buffer, 0xee, message->length);
    POST(link->receiver, link->sender, form->call(link->receiver->ep, message));
}

static void post_send(struct link *link, const struct send_form *form,
                      const struct message *message) {
    ssize_t answer;
    int64_t until = now_ms() + ENTRY_LIMIT_MS;
    while ((answer = form->call(link->sender->ep, message)) == -FI_EAGAIN && now_ms() < until) {
        progress(link->sender);
        progress(link->receiver);
    }
    CHECK(answer == 0, "%s of %zu bytes answered %zd (%s)", form->name, message->length, answer,
          fi_strerror((int)-answer));
    if (form->inject || form->short_only)
        memset(message->buffer, 0xdd, message->length); // it is ours again
}

static void check_sent(struct link *link, const struct send_form *form,
                       const struct message *message) {
    if (form->inject)
        return;
    struct fi_cq_tagged_entry entry = next_entry(link->sender, link->receiver);
    uint64_t kind = FI_SEND | (form->tagged ? FI_TAGGED : FI_MSG);
    CHECK(entry.op_context == message->context, "%s: another context", form->name);
    CHECK((entry.flags & (FI_SEND | FI_RECV | FI_MSG | FI_TAGGED)) == kind, "%s: flags %#llx",
          form->name, (unsigned long long)entry.flags);
}

static void check_received(struct link *link, const struct send_form *send,
                           const struct receive_form *receive, const struct message *message,
                           unsigned seed) {
    struct fi_cq_tagged_entry entry = next_entry(link->receiver, link->sender);
    uint64_t kind =
        FI_RECV | (receive->tagged ? FI_TAGGED : FI_MSG) | (send->data ? FI_REMOTE_CQ_DATA : 0);
    uint64_t looked_at = FI_SEND | FI_RECV | FI_MSG | FI_TAGGED | FI_REMOTE_CQ_DATA;
    CHECK(entry.op_context == message->context, "%s to %s: another context", send->name,
          receive->name);
    CHECK((entry.flags & looked_at) == kind, "%s to %s: flags %#llx", send->name, receive->name,
          (unsigned long long)entry.flags);
    CHECK(entry.len == message->length, "%s to %s: %zu bytes of %zu", send->name, receive->name,
          entry.len, message->length);
    CHECK(!send->data || entry.data == message->data, "%s to %s: other data", send->name,
          receive->name);
    CHECK(!receive->tagged || entry.tag == message->tag, "%s to %s: another tag", send->name,
          receive->name);
    check_filled(message->buffer, message->length, seed);
}

void transfer(struct link *link, const struct send_form *send, const struct receive_form *receive,
              size_t length, bool unexpected) {
    static unsigned count;
    unsigned seed = ++count;
    struct message out = {.buffer = malloc(length + 1), .length = length, .context = &out};
    struct message in = {.buffer = malloc(length + 1), .length = length, .context = &in};
    out.tag = in.tag = 0x1234567890000000ull + ((uint64_t)seed << 8);
    out.data = in.data = 0xfedcba9876543210ull ^ seed;
    fill(out.buffer, length, seed);
    if (link->sender)
        out.address = link->sender->other;
    if (link->receiver)
        in.address = seed % 2 ? link->receiver->other : FI_ADDR_UNSPEC;
    if (!unexpected && link->receiver)
        post_receive(link, receive, &in);
    meet(link);
    if (link->sender)
        post_send(link, send, &out);
    if (unexpected && !send->inject && length <= 64 && link->sender && link->receiver)
        progress(
            link->receiver); // sometimes the message is seen before its receive is posted
    if (unexpected)
        meet(link);
    if (unexpected && link->receiver)
        post_receive(link, receive, &in);
    if (link->receiver)
        check_received(link, send, receive, &in, seed);
    if (link->sender)
        check_sent(link, send, &out);
    meet(link);
    free(out.buffer);
    free(in.buffer);
}

void transfer_all(struct link *link, size_t longest)
{
    static const size_t lengths[] = {0,    1,     7,     64,     200,     1000,   4096,
                                     4097, 20000, 65536, 300001, 1 << 20, 5 << 20};
    for (const struct send_form *send = send_forms; send->name; send++) {
        for (const struct receive_form *receive = receive_forms; receive->name; receive++) {
            for (size_t index = 0; index < sizeof(lengths) / sizeof(lengths[0]); index++) {
                bool fits =
                    lengths[index] <= longest && (!send->short_only || lengths[index] <= 8192);
                if (send->tagged != receive->tagged || !fits)
                    continue;
                transfer(link, send, receive, lengths[index], false);
                transfer(link, send, receive, lengths[index], true);
            }
        }
    }
}
