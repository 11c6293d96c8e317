// SPDX-License-Identifier: Apache-2.0 OR MIT
// Every call that sends and every call that receives, as tables, so that cases can try all of them.
#ifndef WEFT_CONFORMANCE_FORMS_H
#define WEFT_CONFORMANCE_FORMS_H

#include "harness.h"

// What one message is made of.
struct message {
    char *buffer;
    size_t length;
    uint64_t tag, data;
    fi_addr_t address;
    void *context;
};

struct send_form {
    const char *name;
    ssize_t (*call)(struct fid_ep *ep, const struct message *message);
    bool tagged, data, inject, short_only;
};

struct receive_form {
    const char *name;
    ssize_t (*call)(struct fid_ep *ep, const struct message *message);
    bool tagged;
};

extern const struct send_form send_forms[];
extern const struct receive_form receive_forms[];

// Moves one message over a link by one pair of forms and checks everything about it. `unexpected`
// sends it before it is received.
void transfer(struct link *link, const struct send_form *send, const struct receive_form *receive,
              size_t length, bool unexpected);

// All forms, with lengths up to `longest`.
void transfer_all(struct link *link, size_t longest);

#endif
